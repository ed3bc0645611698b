package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/metadata"
	"platform/partition/store"
)

// Status is a replica's view of its partition, for operators and metrics.
type Status struct {
	ID      uint32
	State   string           // Follower, Candidate, Leader or Shutdown
	Leading bool             // this replica leads and accepts requests
	Leader  raftgroup.Leader // zero if unknown
	Contact time.Time        // last one with the leader; zero on the leader and if there was none
	Term    uint64
	Applied uint64 // index of the last log command in the tables
	Commit  uint64 // last committed index
	Last    uint64 // index of the last entry of the log
	// Snapshot is the index from which on the log is kept, apart from trailing entries.
	Snapshot uint64
	// Members is the newest configuration that this replica knows to be committed.
	Members raftgroup.Configuration
	// Newest are the members in the newest configuration, committed or not.
	Newest []raft.ServerID
	// Followers are the other replicas, known to the leader only.
	Followers []raftgroup.Follower
}

// Status returns the current status of the replica.
func (p *Partition) Status() Status {
	st := p.group.Stats()
	var newest []raft.ServerID
	for _, s := range p.group.Servers() {
		newest = append(newest, s.ID)
	}
	return Status{
		ID: p.id, State: st.State, Leading: p.Leading(), Leader: st.Leader, Contact: st.LastContact, Term: st.Term,
		Applied: st.AppliedIndex, Commit: st.CommitIndex, Last: max(st.LastIndex, st.SnapshotIndex), Snapshot: st.SnapshotIndex,
		Members: p.group.Configuration(), Newest: newest, Followers: p.group.Followers(),
	}
}

// RemovedBy reports whether the status of another replica proves that the replica self, whose
// status is s, is not a member of the partition. A replica may wrongly report that it leads, so
// its term must not be older, and its committed configuration must be newer than the last one
// that self was a member of. It must not be about to add self again, either.
//
// The proof holds for as long as self does not respond to the leader, so the replica must be
// stopped before the status is requested: a leader that adds self again relies on its responses.
func (s Status) RemovedBy(reported Status, self raft.ServerID) bool {
	if reported.ID != s.ID || !reported.Leading || reported.Term < s.Term || slices.Contains(reported.Newest, self) {
		return false
	}
	if _, member := reported.Members.Find(self); member {
		return false
	}
	if _, member := s.Members.Find(self); member {
		return reported.Members.Index > s.Members.Index
	}
	return reported.Members.Index >= s.Members.Index
}

// ReplicaOn returns the Raft server ID of the replica on a node, which is that of its newest
// member. If there is none, or it does not respond, ask returns the ID as reported by
// the node, if it responds: a replica whose predecessor's data was removed has another ID than
// that one, which only its node knows. Without a response it is the ID of the node's newest member,
// or that of its first replica.
func (s Status) ReplicaOn(node raft.ServerID, ask func() (raft.ServerID, bool)) raft.ServerID {
	known, number, member := node, uint32(0), false
	for _, m := range s.Members.Servers {
		if on, n := metadata.ReplicaNode(m.ID); on == node && (!member || n > number) {
			known, number, member = m.ID, n, true
		}
	}
	for _, f := range s.Followers {
		if member && f.ID == known && f.Live {
			return known
		}
	}
	stated, ok := ask()
	if !ok {
		return known
	}
	if on, n := metadata.ReplicaNode(stated); on != node || member && n <= number {
		return known
	}
	return stated
}

// RulesVersion returns the version of the rule book in the replica's tables; 0 if there is
// none.
func (p *Partition) RulesVersion() uint32 { return p.tables.Meta().Rules }

// Reconcile changes the replicas of the partition, one at a time, to the desired ones; see
// raftgroup.Group.Reconcile. It returns ErrNotLeader if this replica does not lead, or no
// longer.
func (p *Partition) Reconcile(ctx context.Context, desired []raft.Server) error {
	return p.group.Reconcile(ctx, desired)
}

// TransferLeadership transfers leadership to the given replica, or to any if to is empty.
// It returns ErrNotLeader on a follower and raftgroup.ErrNoPeer if no replica can take
// over.
func (p *Partition) TransferLeadership(ctx context.Context, to raft.ServerID) error {
	return p.group.TransferLeadership(ctx, to)
}

// Stop is Close without a transfer of leadership.
func (p *Partition) Stop(ctx context.Context) error {
	if err := p.group.Stop(ctx); err != nil {
		return fmt.Errorf("stop partition %d: %w", p.id, err)
	}
	p.digests.close()
	return nil
}

// LastPosition returns the end of the replica's log.
func (p *Partition) LastPosition() (raftgroup.Position, error) { return p.group.LastPosition() }

// Voters returns the Raft server IDs of the voters in the replica's newest configuration,
// committed or not.
func (p *Partition) Voters() (ids []string) {
	for _, s := range p.group.Servers() {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}

// Quarantine permanently stops the replica because its data cannot be trusted, for instance
// because its digest differs from that of a majority. It calls Config.OnFailed. See
// raftgroup.Group.Quarantine.
func (p *Partition) Quarantine(reason error) { p.group.Quarantine(reason) }

// Destroy removes a partition's log and tables from the node. The replica must be closed,
// and must have left the partition's configuration: it must no longer count for the quorum.
// After a crash in between, Open fails with raftgroup.ErrLeaving until Destroy has been
// called again. hard is the hard-state record of its group, nil if none is kept.
func Destroy(ctx context.Context, logs *logstore.DB, tables *store.DB, hard *hardstate.State, id uint32) error {
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

// proposeError maps the error of a proposal that was not made: if this leadership is
// ending, callers retry with the next leader.
func proposeError(err error) error {
	if errors.Is(err, raftgroup.ErrStopped) {
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	return err
}
