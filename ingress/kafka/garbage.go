package kafka

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"platform/internal/subscription"
	"platform/partition/machine"
	"platform/partition/store"
)

const (
	// garbageDelay is the time between searches for rows of ended subscriptions.
	garbageDelay = time.Minute
	// garbageAge is how long they are kept: a reader that does not know yet that it was
	// replaced may still send.
	garbageAge = 10 * time.Minute
)

// collectGarbage deletes what a partition stores about incarnations that have ended, until ctx
// ends.
func (e *Engine) collectGarbage(ctx context.Context, o *owner) {
	tick := time.NewTicker(garbageDelay)
	defer tick.Stop()
	dead := map[store.Incarnation]time.Time{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		e.forget(ctx, o, dead, time.Now())
	}
}

// forget deletes the rows of incarnations that have been obsolete for long enough. This node's
// metadata may be outdated, so the leader of the metadata confirms that they are.
func (e *Engine) forget(ctx context.Context, o *owner, dead map[store.Incarnation]time.Time, now time.Time) {
	subscriptions, _ := e.cfg.Source.Subscriptions()
	found, err := ended(o, subscriptions)
	if err != nil {
		return
	}
	var due []store.Incarnation
	for _, i := range found {
		if since, known := dead[i]; !known {
			dead[i] = now
		} else if now.Sub(since) >= garbageAge {
			due = append(due, i)
		}
	}
	maps.DeleteFunc(dead, func(i store.Incarnation, _ time.Time) bool { return !slices.Contains(found, i) })
	if len(due) == 0 {
		return
	}
	confirmed, err := e.cfg.Source.ConfirmedSubscriptions(ctx)
	if err != nil {
		return // tried again with the next search
	}
	current := incarnations(confirmed)
	for _, i := range due {
		c := &machine.ForgetStreams{Subscription: i.Subscription}
		if number, exists := current[i.Subscription]; !exists {
			c.Before, c.Positions = math.MaxUint64, true // there will not be another one with this ID
		} else if c.Before = number; i.Number >= number {
			continue
		}
		if err := o.Forget(ctx, c); err != nil {
			return
		}
		delete(dead, i)
	}
}

// ended returns the incarnations that a partition stores something about and that are not
// current.
func ended(o *owner, subscriptions []subscription.Subscription) ([]store.Incarnation, error) {
	current := incarnations(subscriptions)
	found, err := o.Incarnations()
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(i store.Incarnation) bool {
		number, exists := current[i.Subscription]
		return exists && i.Number >= number
	})
	positions, err := o.Positions("")
	if err != nil {
		return nil, err
	}
	for _, p := range positions {
		i := store.Incarnation{Subscription: p.Stream.Subscription, Number: p.Stream.Incarnation}
		if _, exists := current[i.Subscription]; !exists && !slices.Contains(found, i) {
			found = append(found, i)
		}
	}
	return found, nil
}

// incarnations returns the current incarnations by subscription.
func incarnations(subscriptions []subscription.Subscription) map[string]uint64 {
	current := make(map[string]uint64, len(subscriptions))
	for i := range subscriptions {
		current[subscriptions[i].ID] = subscriptions[i].Incarnation
	}
	return current
}
