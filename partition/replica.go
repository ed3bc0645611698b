package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
	"platform/partition/store"
)

// Status is what a replica knows of its partition, for operators and metrics.
type Status struct {
	ID      uint32
	State   string           // Follower, Candidate, Leader or Shutdown
	Leading bool             // this replica leads and serves
	Leader  raftgroup.Leader // zero if unknown
	Term    uint64
	Applied uint64 // index of the last log command in the tables
	Commit  uint64 // index up to which the log is agreed on
	Last    uint64 // index of the last entry of the log
	// Snapshot is the index from which on the log is kept, but for the trailing
	// entries.
	Snapshot uint64
	// Members are those of the newest configuration that this replica knows to be
	// committed.
	Members raftgroup.Configuration
	// Followers are the other replicas, known to the leader only.
	Followers []raftgroup.Follower
}

// Status returns what the replica knows now.
func (p *Partition) Status() Status {
	st := p.group.Stats()
	return Status{
		ID: p.id, State: st.State, Leading: p.Leading(), Leader: st.Leader, Term: st.Term,
		Applied: st.AppliedIndex, Commit: st.CommitIndex, Last: max(st.LastIndex, st.SnapshotIndex), Snapshot: st.SnapshotIndex,
		Members: p.group.Configuration(), Followers: p.group.Followers(),
	}
}

// RulesVersion is the version of the rule book in the tables of the replica; 0 if they
// have none.
func (p *Partition) RulesVersion() (uint32, error) {
	view := p.tables.View()
	defer view.Close()
	book, err := view.Rules()
	if err != nil {
		return 0, fmt.Errorf("read rules of partition %d: %w", p.id, err)
	}
	return book.Version, nil
}

// Reconcile changes the replicas of the partition, one at a time, until they are
// the desired ones; see raftgroup.Group.Reconcile. It ends with ErrNotLeader when
// this replica does not lead, or not any more.
func (p *Partition) Reconcile(ctx context.Context, desired []raft.Server) error {
	return p.group.Reconcile(ctx, desired)
}

// TransferLeadership hands leadership to the replica to, or to any when it is
// empty: ErrNotLeader on a follower, raftgroup.ErrNoPeer when nobody can take it.
func (p *Partition) TransferLeadership(ctx context.Context, to raft.ServerID) error {
	return p.group.TransferLeadership(ctx, to)
}

// Stop is Close without handing leadership over.
func (p *Partition) Stop(ctx context.Context) error {
	if err := p.group.Stop(ctx); err != nil {
		return fmt.Errorf("stop partition %d: %w", p.id, err)
	}
	p.digests.close()
	return nil
}

// LastPosition is where the replica's log ends.
func (p *Partition) LastPosition() (raftgroup.Position, error) { return p.group.LastPosition() }

// Voters are the Raft server ids of the voters in the newest configuration that the
// replica has, committed or not.
func (p *Partition) Voters() (ids []string) {
	for _, s := range p.group.Servers() {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}

// Quarantine stops the replica for good because its data cannot be trusted, for
// instance because its digest differs from that of the others. See
// raftgroup.Group.Quarantine. Config.OnFailed is told.
func (p *Partition) Quarantine(reason error) { p.group.Quarantine(reason) }

// Destroy removes all that a node has of a partition, log and tables. The replica
// must be closed, and must have left the partition's configuration: the others
// must not count on it any more. After a crash in between, Open fails with
// raftgroup.ErrLeaving until Destroy was called again.
// hard is the hard-state record of its group, nil if none is kept.
func Destroy(ctx context.Context, logs *raftgroup.LogDB, tables *store.DB, hard *raftgroup.HardState, id uint32) error {
	if err := logs.BeginDestroy(GroupID(id)); err != nil {
		return fmt.Errorf("destroy partition %d: %w", id, err)
	}
	if err := tables.Destroy(ctx, id); err != nil {
		return fmt.Errorf("destroy partition %d: %w", id, err)
	}
	if hard != nil {
		if err := hard.Accept(); err != nil {
			return fmt.Errorf("destroy partition %d: %w", id, err)
		}
	}
	if err := logs.Destroy(GroupID(id)); err != nil {
		return fmt.Errorf("destroy partition %d: %w", id, err)
	}
	return nil
}

// refused makes of a proposal that was not made what callers act on: whoever was
// turned away because this leadership ends asks the next leader.
func refused(err error) error {
	if errors.Is(err, raftgroup.ErrStopped) {
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return err
}
