package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// Delays of Reconcile while it waits for another replica.
const (
	reconcileSoon = 10 * time.Millisecond
	reconcileSlow = 500 * time.Millisecond
)

// Reconcile changes the group's members, one at a time, to the desired ones: it adds
// missing ones as nonvoters, promotes those that have caught up, and then demotes and
// removes the others. It never makes a change after which the members that are live and
// caught up would not be a majority.
//
// It only works on the leader; ErrNotLeader says that this replica does not lead, or no
// longer: a leader that should have no vote transfers leadership when everything else is
// done, and its successor does the rest. While a replica does not catch up, or a change
// waits for one that has failed, Reconcile waits until ctx ends, and the error says what
// for. It may be called again at any time; concurrent calls are serialized.
func (g *Group) Reconcile(ctx context.Context, desired []raft.Server) error {
	if err := checkDesired(desired); err != nil {
		return fmt.Errorf("reconcile %s: %w", g.cfg.Name, err)
	}
	select {
	case g.reconciling <- struct{}{}:
		defer func() { <-g.reconciling }()
	case <-ctx.Done():
		return fmt.Errorf("reconcile %s: %w", g.cfg.Name, ctx.Err())
	}
	wait := reconcileSoon
	for {
		changed, why, err := g.reconcileOnce(ctx, desired)
		switch {
		case err != nil:
			return fmt.Errorf("reconcile %s: %w", g.cfg.Name, err)
		case changed:
			wait = reconcileSoon
			continue
		case why == "":
			return nil
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, reconcileSlow)
		case <-g.done:
			return fmt.Errorf("reconcile %s: %w", g.cfg.Name, ErrStopped)
		case <-ctx.Done():
			return fmt.Errorf("reconcile %s: %s: %w", g.cfg.Name, why, ctx.Err())
		}
	}
}

// checkDesired rejects invalid configurations.
func checkDesired(desired []raft.Server) error {
	voters := 0
	for i, s := range desired {
		if s.ID == "" || s.Address == "" {
			return fmt.Errorf("member %d has no ID or no address", i)
		}
		if _, again := findServer(desired[:i], s.ID); again {
			return fmt.Errorf("member %s is named twice", s.ID)
		}
		if s.Suffrage == raft.Voter {
			voters++
		}
	}
	if voters == 0 {
		return errors.New("the desired configuration has no voter")
	}
	return nil
}

// reconcileOnce makes the next change. If none can be made now, why says what it waits for;
// it is empty if nothing is left to do.
func (g *Group) reconcileOnce(ctx context.Context, desired []raft.Server) (changed bool, why string, err error) {
	if !g.IsLeader() {
		return false, "", ErrNotLeader
	}
	now := g.Configuration()
	next := nextChange(g.cfg.LocalID, now.Servers, desired, g.Followers())
	switch next.op {
	case changeNone:
		return false, next.why, nil
	case changeLeader:
		if err := g.TransferLeadership(ctx, next.server.ID); err != nil {
			return false, "", err
		}
		return false, "", fmt.Errorf("%w: handed over to %s", ErrNotLeader, next.server.ID)
	}
	err = g.await(ctx, func(r *raft.Raft) raft.Future {
		if next.op == changeAddNonvoter || next.op == changeRemove {
			g.port.followers.forget(next.server.ID, r.CurrentTerm())
		}
		return next.apply(r, now.Index)
	})
	switch {
	case err == nil:
		g.log.Info("members changed", "change", next.op.String(), "server", string(next.server.ID), "address", string(next.server.Address))
		return true, "", nil
	case errors.Is(err, ErrNotLeader), errors.Is(err, ErrStopped), ctx.Err() != nil:
		return false, "", err
	default: // most probably another change came first
		return false, err.Error(), nil
	}
}

// apply requests the change from Raft, on condition that the configuration is still that of
// the entry at index.
func (c change) apply(r *raft.Raft, index uint64) raft.IndexFuture {
	switch c.op {
	case changeAddVoter:
		return r.AddVoter(c.server.ID, c.server.Address, index, enqueueTimeout)
	case changeAddNonvoter:
		return r.AddNonvoter(c.server.ID, c.server.Address, index, enqueueTimeout)
	case changeDemote:
		return r.DemoteVoter(c.server.ID, index, enqueueTimeout)
	default:
		return r.RemoveServer(c.server.ID, index, enqueueTimeout)
	}
}
