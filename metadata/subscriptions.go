package metadata

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"platform/internal/ids"
	"platform/internal/subscription"
)

// Reasons for rejecting a change of event subscriptions.
var (
	ErrTooManySubscriptions = errors.New("too many subscriptions exist")
	ErrSubscriptionNotFound = errors.New("there is no such subscription")
	errSubscriptionChanged  = errors.New("subscription was changed by another request")
)

// putSubscription adds or replaces a subscription.
type putSubscription struct {
	subscription subscription.Subscription
	expected     uint64 // version; 0: it is new
}

// deleteSubscription deletes a subscription.
type deleteSubscription struct{ id string }

// barrier changes nothing. Once it has been applied here, this node knows everything that was
// committed before it was proposed.
type barrier struct{}

func (*putSubscription) command()    {}
func (*deleteSubscription) command() {}
func (*barrier) command()            {}

// Subscriptions returns the event subscriptions by ID, that is in the order of their creation,
// and a channel that is closed when they or the Kafka clusters have changed since. The slice is
// shared.
func (s *Store) Subscriptions() ([]subscription.Subscription, <-chan struct{}) {
	v := s.source.current()
	return v.readable.subscriptions, v.subscriptionsChanged
}

// ConfirmedSubscriptions is Subscriptions as of a moment after the call began, even if this node's
// view is outdated.
func (s *Store) ConfirmedSubscriptions(ctx context.Context) ([]subscription.Subscription, error) {
	if _, err := propose[any](ctx, s, &barrier{}); err != nil {
		return nil, err
	}
	return s.source.current().readable.subscriptions, nil
}

// Subscription returns an event subscription; false if there is none with that ID.
func (s *Store) Subscription(id string) (subscription.Subscription, bool) {
	subscriptions := s.source.current().readable.subscriptions
	at, known := slices.BinarySearchFunc(subscriptions, id, compareSubscription)
	if !known {
		return subscription.Subscription{}, false
	}
	return subscriptions[at], true
}

// storeSubscription encrypts the secrets of a subscription and stores it.
func (s *Store) storeSubscription(ctx context.Context, sub subscription.Subscription, expected uint64) (subscription.Subscription, error) {
	stored, _ := s.source.current().subscription(sub.ID)
	var err error
	if sub.Properties, err = s.seal(subscriptionSecrets, sub.ID, sub.Properties, stored.Properties); err != nil {
		return sub, err
	}
	sub, err = propose[subscription.Subscription](ctx, s, &putSubscription{sub, expected})
	return openSubscription(s.source.current().keys, sub), err
}

// NewSubscriptionID returns an ID for a subscription to create.
func (s *Store) NewSubscriptionID() string { return ids.NewSubscription(s.newID()) }

// CreateSubscription adds a subscription that has an ID of NewSubscriptionID. It sets its times,
// version and incarnation. The error can be ErrTooManySubscriptions or have code META0009.
func (s *Store) CreateSubscription(ctx context.Context, sub subscription.Subscription) (subscription.Subscription, error) {
	if err := sub.Check(); err != nil {
		return sub, err
	}
	sub.Incarnation, sub.CreatedAt = 1, fromMillis(s.now().UnixMilli())
	return s.storeSubscription(ctx, sub, 0)
}

// ChangeSubscription replaces a subscription by the result of change, which gets the current one
// and may run several times; it must not modify what the value refers to. The error can be
// ErrSubscriptionNotFound, have code META0009, or be that of change.
func (s *Store) ChangeSubscription(ctx context.Context, id string, change func(subscription.Subscription) (subscription.Subscription, error)) (subscription.Subscription, error) {
	return retryConflict(ctx, errSubscriptionChanged, func() (subscription.Subscription, error) {
		current, known := s.Subscription(id)
		if !known {
			return current, &rejection{ErrSubscriptionNotFound, ErrSubscriptionNotFound.Error() + ": " + id}
		}
		next, err := change(current)
		if err != nil {
			return current, err
		}
		checked := next
		checked.Properties = withoutSealed(next.Properties)
		if err := checked.Check(); err != nil {
			return current, err
		}
		return s.storeSubscription(ctx, next, current.Version)
	})
}

// retryConflict repeats a change of a record while it fails because another request has changed
// the record first.
func retryConflict[T any](ctx context.Context, conflict error, change func() (T, error)) (T, error) {
	for {
		changed, err := change()
		if !errors.Is(err, conflict) || ctx.Err() != nil {
			return changed, err
		}
	}
}

// ResolveSubscription stores where an incarnation of a subscription starts. If that is already
// stored or the incarnation is over, nothing changes; the result is the current subscription.
func (s *Store) ResolveSubscription(ctx context.Context, id string, incarnation uint64, offsets []subscription.TopicStart) (subscription.Subscription, error) {
	errResolved := errors.New("resolved")
	changed, err := s.ChangeSubscription(ctx, id, func(sub subscription.Subscription) (subscription.Subscription, error) {
		if sub.Incarnation != incarnation || sub.Resolved {
			return sub, errResolved
		}
		sub.Offsets, sub.Resolved = offsets, true
		return sub, nil
	})
	if errors.Is(err, errResolved) {
		return changed, nil
	}
	return changed, err
}

// RemoveSubscription deletes a subscription, with what is in flight unfinished. One that does
// not exist is no error.
func (s *Store) RemoveSubscription(ctx context.Context, id string) error {
	_, err := propose[any](ctx, s, &deleteSubscription{id})
	return err
}

func (s *state) subscription(id string) (subscription.Subscription, bool) {
	at, known := slices.BinarySearchFunc(s.subscriptions, id, compareSubscription)
	if !known {
		return subscription.Subscription{}, false
	}
	return s.subscriptions[at], true
}

func compareSubscription(s subscription.Subscription, id string) int { return cmp.Compare(s.ID, id) }

// applyPutSubscription returns the Subscription.
func applyPutSubscription(d *draft, at time.Time, cmd *putSubscription) (outcome, error) {
	sub := cmd.subscription
	pos, known := slices.BinarySearchFunc(d.subscriptions, sub.ID, compareSubscription)
	switch {
	case cmd.expected != 0 && !known:
		return rejected(ErrSubscriptionNotFound, "%s", sub.ID), nil
	case cmd.expected == 0 && known:
		return rejected(errSubscriptionChanged, "%s exists", sub.ID), nil
	case known && d.subscriptions[pos].Version != cmd.expected:
		return rejected(errSubscriptionChanged, "it is at version %d, not %d", d.subscriptions[pos].Version, cmd.expected), nil
	case !known && len(d.subscriptions) >= subscription.MaxSubscriptions:
		return rejected(ErrTooManySubscriptions, "%d do; delete some", len(d.subscriptions)), nil
	}
	if known && sub.Incarnation > d.subscriptions[pos].Incarnation {
		// Partitions may know of incarnations that this log has lost in a recovery.
		sub.Incarnation = max(sub.Incarnation, uint64(max(0, at.UnixMilli())))
	}
	sub.Version, sub.ModifiedAt = cmd.expected+1, at
	d.subscriptions = placed(d.subscriptions, pos, known, sub)
	return outcome{value: sub}, d.put(tableSubscriptions, sub.ID, subscriptionToProto(&sub))
}

func applyDeleteSubscription(d *draft, cmd *deleteSubscription) (outcome, error) {
	pos, known := slices.BinarySearchFunc(d.subscriptions, cmd.id, compareSubscription)
	if known {
		d.subscriptions = slices.Delete(slices.Clone(d.subscriptions), pos, pos+1)
		d.deleteRecord(tableSubscriptions, cmd.id)
	}
	return outcome{}, nil
}
