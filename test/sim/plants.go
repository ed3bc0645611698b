package sim

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"platform/internal/fabric"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/partition/store"
)

// The defects that can be planted, to see that seeds find them. Each lies at a seam that
// the simulation has anyway; the servers know nothing of it.
const (
	// staleRead: a leader answers reads from its tables without asking the others.
	staleRead = "stale-read"
	// earlyAck: a send is acknowledged before it is committed.
	earlyAck = "early-ack"
	// lostDedup: a request that is repeated is taken for a new one.
	lostDedup = "lost-dedup"
	// oldIndex: tables that come back after a crash have a lower applied index than rows.
	oldIndex = "old-index"
	// amnesia: a node comes back from a crash with empty directories, as who it was.
	amnesia = "amnesia"
	// wedge: a batch of messages between partitions that is too large is refused, and
	// sent again as it is.
	wedge = "wedge"
	// lostSignal: the attempt after a failed one is not told of a signal that reached that
	// one.
	lostSignal = "lost-signal"
	// lostSync: disks say that something is synced and it is not.
	lostSync = "lost-sync"
)

// Plants are the defects, and what a seed may say that finds one.
var Plants = map[string][]string{
	staleRead:  {"not linearizable"},
	earlyAck:   {"lost:"},
	lostDedup:  {"doubled:", "not linearizable"},
	oldIndex:   {"restart:", "differ", "elsewhere", "failed", "replay of", "doubled:", "not linearizable"},
	amnesia:    {"lost:", "not linearizable", "elsewhere", "differ"},
	wedge:      {"stuck:"},
	lostSignal: {"stuck:"},
	lostSync:   {"lost:", "not linearizable", "elsewhere", "differ"},
}

func (s *Sim) planted(defect string) bool { return s.opts.Plant == defect }

// plantedReplica is a replica with a defect.
type plantedReplica struct {
	fabric.Local
	p *partition.Partition
	l *life
}

// defective is a replica as other nodes and clients see it.
func (l *life) defective(p *partition.Partition) fabric.Local {
	switch l.n.sim.opts.Plant {
	case staleRead, earlyAck, lostDedup:
		return &plantedReplica{p, p, l}
	}
	return p
}

// State implements fabric.Replica.
func (r *plantedReplica) State(ctx context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	if !r.l.n.sim.planted(staleRead) {
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
func (r *plantedReplica) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	if !r.l.n.sim.planted(earlyAck) {
		return r.p.Invoke(ctx, r.l.n.sim.mistaken(inv))
	}
	if !r.p.Leading() {
		return machine.Outcome{}, raftgroup.ErrNotLeader
	}
	go r.p.Invoke(context.WithoutCancel(ctx), inv) //nolint:errcheck // this is the defect
	return machine.Outcome{}, nil
}

// Call implements fabric.Replica.
func (r *plantedReplica) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	return r.p.Call(ctx, r.l.n.sim.mistaken(inv))
}

// mistaken is, by the planted defect lostDedup, another invocation for each repetition of
// a request.
func (s *Sim) mistaken(inv *machine.Invoke) *machine.Invoke {
	if !s.planted(lostDedup) {
		return inv
	}
	times := s.history.attempt("request " + inv.ID.String())
	other := *inv
	other.ID[len(other.ID)-1] += byte(times - 1)
	return &other
}

// wedgedBatch is what the planted limit on messages lets through.
const wedgedBatch = 2

var errTooLarge = errors.New("the batch is larger than the transport takes")

// deliver is how outboxes ship.
func (l *life) deliver(ctx context.Context, to uint32, d *machine.Deliver) error {
	if l.n.sim.planted(wedge) && len(d.Messages) > wedgedBatch {
		return errTooLarge
	}
	return l.directory.Partition(to).Deliver(ctx, d)
}

// afterCrash is the disk of a node that has crashed, as a planted defect leaves it.
func (n *node) afterCrash(d *disk) *disk {
	switch {
	case n.sim.planted(amnesia):
		return newDisk(vfs.NewCrashableMem(), n.rng)
	case n.sim.planted(lostSync) && n.rng.IntN(3) == 0:
		return newDisk(d.forgetful(), n.rng)
	}
	return d
}

// replayed is how many entries a planted crash has applied again.
const replayed = 30

// metaKey is the row that has the applied index.
const metaKey = "m"

// setBack gives tables a lower index than their rows have.
func setBack(tables *store.Partition, logs raftgroup.Storage) error {
	applied, _ := tables.Applied()
	if applied <= replayed {
		return nil
	}
	var entry raft.Log
	if logs.GetLog(applied-replayed, &entry) != nil {
		return nil
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
