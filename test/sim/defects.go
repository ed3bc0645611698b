package sim

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"platform/internal/cluster/fabric"
	"platform/internal/failpoint"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/logstore"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

// Defects of the simulation that test whether seeds detect them. They are at the interfaces
// that the simulation replaces, outside the servers.
const (
	// staleRead: a leader serves reads from its tables without verifying its leadership.
	staleRead = "stale-read"
	// earlyAck: a send is acknowledged before it is committed.
	earlyAck = "early-ack"
	// lostDedup: a repeated request is processed as a new one.
	lostDedup = "lost-dedup"
	// lowAppliedIndex: tables that come back after a crash have a lower applied index than rows.
	lowAppliedIndex = "low-applied-index"
	// lostDirectories: a node restarts after a crash with empty directories and its old identity.
	lostDirectories = "lost-directories"
	// stuckBatch: a batch of messages between partitions is rejected as too large and resent
	// unchanged.
	stuckBatch = "stuck-batch"
	// lostSignal: a signal delivered to a failed attempt is not delivered to the next one.
	lostSignal = "lost-signal"
	// ignoredLevel: leaders write what the newest server reads, whatever the cluster's feature
	// level is.
	ignoredLevel = "ignored-level"
	// reusedServerID: a replica has the Raft server ID of its predecessor on the node, whose
	// data was removed.
	reusedServerID = "reused-server-id"
	// lostSync: disks report a sync that has not happened.
	lostSync = "lost-sync"
	// brokenChain: a reader of a topic that learns that a partition has less than it assumed does not
	// send the missing records again.
	brokenChain = "broken-chain"
	// lostOperation: some operations are acknowledged and not carried out.
	lostOperation = "lost-operation"
	// newStreams: each reader of a topic assigns new IDs to its records.
	newStreams = "new-streams"
)

// Detection describes how seeds detect a defect.
type Detection struct {
	Faults []string // the kinds of faults that expose it, nil: those that the seed draws
	Nodes  int      // 0: the number that the seed draws
	Signs  []string // the violations that detect it
}

// Planted are the failpoints of the server that seeds must detect.
var Planted = map[failpoint.Name]Detection{
	failpoint.EpochWithoutTerm:  {[]string{"elections in turn", "election without inbound messages", "transfer"}, 0, []string{"two leaders:"}},
	failpoint.EarlierResponses:  {[]string{"election without inbound messages"}, 3, []string{"not linearizable"}},
	failpoint.NonvoterResponses: {[]string{"election without inbound messages", "checkpoint"}, 4, []string{"not linearizable"}},
	failpoint.MonotonicTimers:   {nil, 0, []string{"late:"}},
	failpoint.IgnoreLocks:       {nil, 0, []string{"not linearizable", "lost:", "duplicate:"}},
	failpoint.OvertakenProgress: {nil, 0, []string{"replay of", "stuck:", "failed"}},
	failpoint.EarlyTimers:       {nil, 0, []string{"too early"}},
}

// Defects are the defects of the simulation that seeds must detect.
var Defects = map[string]Detection{
	staleRead:       {nil, 0, []string{"not linearizable"}},
	earlyAck:        {[]string{"crash", "crash all", "silence a leader", "isolate a node"}, 0, []string{"lost:"}},
	lostDedup:       {nil, 0, []string{"duplicate:", "not linearizable"}},
	lowAppliedIndex: {nil, 0, []string{"restart:", "differ", "elsewhere", "failed", "replay of", "duplicate:", "not linearizable"}},
	lostDirectories: {nil, 0, []string{"lost:", "not linearizable", "elsewhere", "differ", "stuck:"}},
	stuckBatch:      {nil, 0, []string{"stuck:"}},
	lostSignal:      {nil, 0, []string{"stuck:"}},
	ignoredLevel:    {nil, 0, []string{"has entries of level"}},
	reusedServerID:  {[]string{"away and back"}, 5, []string{"lost:", "not linearizable", "elsewhere", "differ", "two leaders:"}},
	brokenChain:     {nil, 0, []string{"lost:"}},
	newStreams:      {nil, 0, []string{"duplicate:"}},
	lostOperation:   {nil, 0, []string{"stuck:"}},
	lostSync:        {[]string{"crash", "crash all", "transfer"}, 0, []string{"lost:", "not linearizable", "elsewhere", "differ", "restart:"}},
}

func (s *Sim) hasDefect(defect string) bool { return s.opts.Defect == defect }

// defectiveReplica is a replica with a defect.
type defectiveReplica struct {
	fabric.Local
	p *partition.Partition
	l *incarnation
}

// serveReplica returns a replica as other nodes and clients see it.
func (l *incarnation) serveReplica(p *partition.Partition) fabric.Local {
	switch l.n.sim.opts.Defect {
	case staleRead, earlyAck, lostDedup, lostOperation:
		return &defectiveReplica{p, p, l}
	}
	return p
}

// State implements fabric.Replica.
func (r *defectiveReplica) State(ctx context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	if !r.l.n.sim.hasDefect(staleRead) {
		return r.p.State(ctx, o, limit)
	}
	if !r.p.Leading() {
		return nil, false, raftgroup.ErrNotLeader
	}
	tables, err := r.l.tables.Partition(r.p.ID())
	if err != nil {
		return nil, false, err
	}
	view := tables.View()
	defer view.Close()
	return view.Values(o, limit)
}

// Invoke implements fabric.Replica.
func (r *defectiveReplica) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	if !r.l.n.sim.hasDefect(earlyAck) {
		return r.p.Invoke(ctx, r.l.n.sim.newRequestID(inv))
	}
	if !r.p.Leading() {
		return machine.Outcome{}, raftgroup.ErrNotLeader
	}
	go r.p.Invoke(context.WithoutCancel(ctx), inv) //nolint:errcheck // this is the defect
	return machine.Outcome{}, nil
}

// Call implements fabric.Replica.
func (r *defectiveReplica) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	return r.p.Call(ctx, r.l.n.sim.newRequestID(inv))
}

// Operate implements fabric.Replica.
func (r *defectiveReplica) Operate(ctx context.Context, c machine.Operation) (machine.Outcome, error) {
	if s := r.l.n.sim; s.hasDefect(lostOperation) && r.p.Leading() && s.history.attempt(lostOperation)%4 == 0 {
		return machine.Outcome{}, nil
	}
	return r.p.Operate(ctx, c)
}

// newRequestID implements the defect lostDedup: it returns a new invocation for a repeated
// request.
func (s *Sim) newRequestID(inv *machine.Invoke) *machine.Invoke {
	if !s.hasDefect(lostDedup) {
		return inv
	}
	times := s.history.attempt("request " + inv.ID.String())
	other := *inv
	other.ID[len(other.ID)-1] += byte(times - 1)
	return &other
}

// maxBatchSize is the message limit of the defect stuckBatch.
const maxBatchSize = 2

var errTooLarge = errors.New("the batch exceeds the limit of the transport")

// deliver delivers a batch of an outbox.
func (l *incarnation) deliver(ctx context.Context, to uint32, d *machine.Deliver) error {
	if l.n.sim.hasDefect(stuckBatch) && len(d.Messages) > maxBatchSize {
		return errTooLarge
	}
	return l.directory.Partition(to).Deliver(ctx, d)
}

// diskAfterCrash returns the disk of a crashed node, modified by the active defect.
func (n *node) diskAfterCrash(d *disk) *disk {
	switch {
	case n.sim.hasDefect(lostDirectories):
		return newDisk(vfs.NewCrashableMem(), n.rng)
	case n.sim.hasDefect(lostSync) && n.rng.IntN(3) == 0:
		return newDisk(d.unsyncedState(), n.rng)
	}
	return d
}

// replayedEntries is how many entries are applied again by the defect lowAppliedIndex.
const replayedEntries = 30

// metaKey is the row of the applied index.
const metaKey = "m"

// lowerAppliedIndex lowers the applied index of tables below that of their rows.
func lowerAppliedIndex(tables *store.Partition, logs logstore.Storage) error {
	applied, _ := tables.Applied()
	if applied <= replayedEntries {
		return nil
	}
	var entry raft.Log
	if err := logs.GetLog(applied-replayedEntries, &entry); err != nil {
		return nil //nolint:nilerr // the entry was compacted: there is nothing to replay
	}
	from, err := tables.Export()
	if err != nil {
		return err
	}
	to, err := tables.Import()
	if err != nil {
		return errors.Join(err, from.Close())
	}
	err = errors.Join(from.Each(context.Background(), func(key, value []byte) error {
		if string(key) == metaKey {
			m, err := codec.DecodeMeta(value)
			if err != nil {
				return err
			}
			m.Index, m.Term = entry.Index, entry.Term
			value = codec.AppendMeta(nil, &m)
		}
		return to.Put(key, value)
	}), from.Close())
	if err != nil {
		return errors.Join(err, to.Abort())
	}
	return to.Commit(context.Background(), entry.Index, entry.Term)
}
