package metadata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/metadata/placement"
)

const (
	// maxMoves bounds the partitions that get or lose a replica at the same time.
	maxMoves = 4
	// The controller runs again after a change, but with a short pause, after a moment
	// while changes are in progress, and rarely otherwise.
	controlPause = 10 * time.Millisecond
	controlSoon  = 200 * time.Millisecond
	controlIdle  = 2 * time.Second
	// changeTimeout bounds one change of the metadata group.
	changeTimeout = 10 * time.Second
)

// RunController manages the cluster while this node leads the metadata: it gives members
// their replica and vote in the metadata group, takes both from leaving ones, changes the
// partition table in single steps, and raises the feature level. It returns when ctx ends. Each
// leadership has an observer of its own: what an earlier one has observed is outdated.
func (s *Store) RunController(ctx context.Context, observe func() Observer) error {
	for {
		select {
		case leadership := <-s.replica.raftLog.gate.leaderships:
			s.control(ctx, leadership, observe())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// control runs the controller until this leadership ends.
func (s *Store) control(ctx, leadership context.Context, obs Observer) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(leadership, cancel)()
	for {
		_, changed := s.Layout()
		wait, err := s.controlOnce(ctx, obs)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.replica.log.Warn("could not change the cluster, retrying", "err", err)
		}
		// Limits the rate when something changes continuously.
		timer := time.NewTimer(wait)
		select {
		case <-time.After(controlPause):
		case <-ctx.Done():
		}
		select {
		case <-changed:
		case <-obs.Changed():
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// controlOnce makes the changes that are due. wait is the time until the next run if
// nothing changes.
func (s *Store) controlOnce(ctx context.Context, obs Observer) (wait time.Duration, err error) {
	v := s.source.current()
	liveness := obs.Liveness()
	busy, err := s.controlGroup(ctx, v, liveness, obs)
	more, placeErr := s.controlPartitions(ctx, v, liveness, obs)
	err = errors.Join(err, placeErr, s.controlLevel(ctx, v, obs))
	if err == nil && (busy || more) {
		return controlSoon, nil
	}
	return controlIdle, err
}

// controlGroup makes one change of the metadata group, if one is due. A server that does not
// respond does not prevent that of another one.
func (s *Store) controlGroup(ctx context.Context, v *view, liveness map[uint32]placement.Liveness, obs Observer) (busy bool, err error) {
	r := s.replica
	changes := groupView{
		local: r.raftLog.local, servers: r.group.Servers(), records: v.nodes, members: v.layout.Nodes, liveness: liveness,
	}.changes()
	var unknown error
	for _, c := range changes {
		ready, err := s.ready(ctx, c, obs)
		unknown = errors.Join(unknown, err)
		if !ready {
			continue
		}
		r.log.Info("changing the metadata group", "change", string(c.kind), "server", string(c.server.ID), "address", string(c.server.Address))
		ctx, cancel := context.WithTimeout(ctx, changeTimeout)
		defer cancel()
		if err := c.make(ctx, r.group); err != nil {
			return true, fmt.Errorf("%s %s: %w", c.kind, c.server.ID, err)
		}
		return true, nil
	}
	return len(changes) > 0, unknown
}

// ready reports whether a replica that is to be promoted has caught up. Otherwise it would
// delay the group as soon as it is needed for a majority.
func (s *Store) ready(ctx context.Context, c groupChange, obs Observer) (bool, error) {
	if c.kind != promote {
		return true, nil
	}
	needed := s.AppliedIndex()
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	applied, err := obs.Applied(ctx, c.node)
	if err != nil {
		return false, fmt.Errorf("query applied index of %s: %w", c.node.Name, err)
	}
	return applied >= needed, nil
}

// AppliedIndex returns the log index of the last change that this replica has applied.
func (s *Store) AppliedIndex() uint64 { return s.replica.fsm.Applied().Index }

// controlPartitions makes the next steps in the partition table.
func (s *Store) controlPartitions(ctx context.Context, v *view, liveness map[uint32]placement.Liveness, obs Observer) (busy bool, err error) {
	if len(v.layout.Partitions) == 0 {
		return false, nil
	}
	alive := map[uint32]placement.Liveness{}
	for _, n := range v.layout.Nodes {
		alive[n.ID] = liveness[n.ID]
		if n.ServerID() == s.replica.raftLog.local {
			alive[n.ID] = placement.Alive
		}
	}
	now := placementInput(v.layout, v.nodes, alive, obs.Partitions(ctx))
	for _, step := range now.Next() {
		p := v.layout.Partitions[step.Partition]
		s.replica.log.Debug("changing the partition table", "partition_id", p.ID,
			"reason", string(step.Reason), "from", p.Replicas, "to", step.Replicas)
		p.Replicas = step.Replicas
		if _, err := s.SetPartition(ctx, p); err != nil && !errors.Is(err, ErrVersionConflict) {
			return true, fmt.Errorf("set partition %d: %w", p.ID, err)
		}
		busy = true
	}
	return busy || now.Moving(), nil
}

// groupOps changes the configuration of a Raft group.
type groupOps interface {
	AddNonvoter(ctx context.Context, id raft.ServerID, addr raft.ServerAddress) error
	AddVoter(ctx context.Context, id raft.ServerID, addr raft.ServerAddress) error
	DemoteVoter(ctx context.Context, id raft.ServerID) error
	RemoveServer(ctx context.Context, id raft.ServerID) error
	TransferLeadership(ctx context.Context, to raft.ServerID) error
}

func (c groupChange) make(ctx context.Context, g groupOps) error {
	switch c.kind {
	case add:
		return g.AddNonvoter(ctx, c.server.ID, c.server.Address)
	case promote, readdress:
		return g.AddVoter(ctx, c.server.ID, c.server.Address)
	case demote:
		return g.DemoteVoter(ctx, c.server.ID)
	case remove:
		return g.RemoveServer(ctx, c.server.ID)
	case handOver:
		return g.TransferLeadership(ctx, c.server.ID)
	}
	return fmt.Errorf("unknown change %q", c.kind)
}
