package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/internal/version"
	"platform/partition/journal"
	"platform/partition/machine"
)

const (
	// stateLimit limits how much of an object's state is read, in bytes.
	stateLimit = 64 << 20
	// updateGracePeriod is how long a request waits for an update of state that it does not want to
	// wait for: long enough for the outcome if nothing holds the key.
	updateGracePeriod = 500 * time.Millisecond
)

// State implements admin.Operator.
func (o *operator) State(ctx context.Context, object admin.Object) (admin.State, error) {
	entries, complete, err := o.router.State(ctx, machine.Object{Scope: object.Scope, Service: object.Service, Key: object.Key}, stateLimit)
	if err != nil {
		return admin.State{}, operatorError(err)
	}
	if !complete {
		return admin.State{}, reject(500, "the state is larger than %d bytes", stateLimit)
	}
	return stateOf(entries), nil
}

func stateOf(entries []machine.StateEntry) admin.State {
	var s admin.State
	v := machine.NewStateVersion()
	for _, e := range entries {
		v.Add(e)
		s.Entries = append(s.Entries, admin.StateEntry{Key: string(e.Key), Value: e.Value})
	}
	s.Version = v.String()
	return s
}

// UpdateState implements admin.Operator.
func (o *operator) UpdateState(ctx context.Context, u admin.StateUpdate, wait bool) (admin.StateChange, error) {
	inv := &machine.Invoke{
		ID:            ids.NewInvocation(ids.Route(u.Object.Scope, u.Object.Key), newUnique()),
		Target:        machine.Target{Scope: u.Object.Scope, Service: u.Object.Service, Key: u.Object.Key, Type: target.StateUpdate},
		Input:         journal.NewStateReplacement(replacement(u)),
		ServerVersion: version.Version(),
	}
	if _, err := o.router.Send(ctx, inv); err != nil {
		return admin.StateChange{}, operatorError(err)
	}
	waiting := ctx
	if !wait {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, updateGracePeriod)
		defer cancel()
	}
	answer, err := o.router.Attach(waiting, inv.ID)
	down, unavailable := errors.AsType[*routing.UnavailableError](err)
	switch {
	case err == nil:
		return changeOf(inv.ID, &answer.Result), nil
	case !wait && (unavailable || waiting.Err() != nil) && ctx.Err() == nil: // it is stored in any case
		return admin.StateChange{ID: inv.ID, Status: admin.ChangeQueued}, nil
	case unavailable:
		return admin.StateChange{}, fmt.Errorf("%w; the update is stored and will be applied, do not repeat it: GET /state-updates/%s shows its status: %w", admin.ErrUnavailable, inv.ID, down)
	}
	return admin.StateChange{}, operatorError(err)
}

// replacement returns the update in key order, so that its encoding is deterministic.
func replacement(u admin.StateUpdate) *journal.StateReplacement {
	entries := slices.SortedFunc(slices.Values(u.Entries), func(a, b admin.StateEntry) int { return cmp.Compare(a.Key, b.Key) })
	r := &journal.StateReplacement{Version: u.Version}
	for _, e := range entries {
		r.State = append(r.State, journal.StatePair{Key: []byte(e.Key), Value: e.Value})
	}
	return r
}

// changeOf returns the outcome of an update; without a result it is pending.
func changeOf(id ids.Invocation, result *journal.Result) admin.StateChange {
	switch {
	case result == nil:
		return admin.StateChange{ID: id, Status: admin.ChangeQueued}
	case result.Failure != nil:
		return admin.StateChange{ID: id, Status: admin.ChangeRefused, Reason: result.Failure.Message}
	}
	return admin.StateChange{ID: id, Status: admin.ChangeApplied}
}

// StateChange implements admin.Operator.
func (o *operator) StateChange(ctx context.Context, id ids.Invocation) (admin.StateChange, error) {
	inv, err := o.router.Find(ctx, id)
	switch {
	case err != nil:
		return admin.StateChange{}, operatorError(err)
	case inv.Target.Type != target.StateUpdate:
		return admin.StateChange{}, rest.ErrNotFound
	}
	return changeOf(id, inv.Result), nil
}

// newUnique returns the unique part of a new ID.
func newUnique() [16]byte { return ids.OrderedUnique(time.Now().UnixMilli(), rand.Uint64) }
