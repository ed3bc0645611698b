package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"platform/internal/cluster/fabric"
	"platform/internal/feature"
	"platform/partition"
	"platform/partition/machine"
	"platform/partition/store"
)

const (
	// completionTimeout limits the completion of all pending work after the last fault.
	completionTimeout = 45 * time.Second
	// responseTimeout limits every response after the last fault.
	responseTimeout = 40 * time.Second
)

// settled is waitUntil, and restarts nodes that crash: those whose disk was slow may do so after the last fault.
func (s *Sim) settled(limit time.Duration, condition func() bool) bool {
	return s.waitUntil(limit, func() bool {
		for _, n := range s.nodes {
			s.restart(n)
		}
		return condition()
	})
}

// settle waits until a healthy cluster has completed all work and checks its contents.
func (s *Sim) settle(ctx context.Context) {
	if !s.settled(responseTimeout, s.allLed) {
		s.violate("stuck: not all partitions are led %s after the last fault: %s", responseTimeout, s.leaders())
		return
	}
	s.checkSuspension()
	moving := ""
	if !s.settled(completionTimeout, func() bool { moving = s.misplaced(); return moving == "" }) {
		s.violate("stuck: %s after the last fault %s", completionTimeout, moving)
	}
	unread := ""
	if s.level.current() >= feature.Level4 && !s.settled(completionTimeout, func() bool { unread = s.unread(); return unread == "" }) {
		s.violate("stuck: %s after the last fault %s", completionTimeout, unread)
	}
	c := s.newClient(clients)
	s.releaseSagas(ctx, c)
	s.decideAll(ctx, c)
	open := ""
	if !s.settled(completionTimeout, func() bool { open = s.pendingWork(); return open == "" }) {
		s.violate("stuck: %s after the last fault there is still %s", completionTimeout, open)
	}
	s.trace.add("at rest")
	s.resolveUnknown(ctx, c)
	s.checkCommonResults(ctx, c)
	s.finalReads(ctx, c)
	s.checkReplicasEqual()
}

// leaders describes which nodes run, and whom they consider to lead each partition.
func (s *Sim) leaders() (text string) {
	for _, n := range s.nodes {
		l := n.running()
		if l == nil {
			text += n.name + " is down; "
			continue
		}
		for id := range s.opts.Partitions {
			if p := l.partition(id); p != nil {
				text += fmt.Sprintf("%s: partition %d, leads: %t, knows %q; ", n.name, id, p.Leading(), p.Leader().ID)
			}
		}
	}
	return text
}

// pendingWork describes the pending work of the cluster, "" if there is none.
func (s *Sim) pendingWork() string {
	for id := range s.opts.Partitions {
		n := s.leader(id)
		if n == nil {
			return fmt.Sprintf("partition %d without a leader", id)
		}
		l := n.running()
		if l == nil {
			return "a node that is down"
		}
		if what := l.pendingWork(id); what != "" {
			return fmt.Sprintf("%s in partition %d", what, id)
		}
	}
	return ""
}

func (l *incarnation) pendingWork(id uint32) string {
	tables, err := l.tables.Partition(id)
	if err != nil {
		return err.Error()
	}
	view := tables.View()
	defer view.Close()
	for inv, err := range view.Live() {
		if err != nil {
			return err.Error()
		}
		if l.n.sim.history.mayBeUnsignaled(inv.ID) {
			continue
		}
		return fmt.Sprintf("%s of %s, %v", inv.ID, inv.Target, inv.Status)
	}
	for to := range l.n.sim.opts.Partitions {
		if _, messages, _, err := view.Outgoing(to, 0, 1, 0); err != nil || len(messages) > 0 {
			return fmt.Sprintf("a message for partition %d (%v)", to, err)
		}
	}
	return ""
}

// resolveUnknown determines the outcome of additions without a response.
func (s *Sim) resolveUnknown(ctx context.Context, c *client) {
	for _, op := range s.history.ops {
		if op.Delta == 0 || op.State != unknown {
			continue
		}
		owner := s.owner(op.ID)
		inv, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (*machine.Invocation, error) {
			return d.Partition(owner).Find(ctx, op.ID)
		})
		switch {
		case e != done:
			s.violate("stuck: no response to %s from a healthy cluster: %v", op, err)
		case errors.Is(err, partition.ErrNotFound):
			op.State = failed
		case inv.Status == machine.Completed:
			op.State, op.ResolvedLate, op.Got = done, true, number(valueOf(inv.Result))
		}
		s.trace.add("resolved: %s", op)
	}
}

// finalReads reads all objects.
func (s *Sim) finalReads(ctx context.Context, c *client) {
	for i := range counters {
		c.readCounter(ctx, counterKey(i))
	}
	var entries []string
	for i := range ledgers {
		state, e := c.state(ctx, "Ledger", ledgerKey(i))
		if e != done {
			s.violate("stuck: %s is not readable", ledgerKey(i))
			return
		}
		entries = append(entries, fields(state["ids"])...)
	}
	s.history.checkLedgers(entries)
	s.checkSagas(ctx, c, entries)
	s.readRecords(ctx, c)
}

// readRecords reads which records of the topics the handlers have received.
func (s *Sim) readRecords(ctx context.Context, c *client) {
	if s.level.current() < feature.Level4 {
		return // records become invocations from this level on
	}
	received := map[string][]string{}
	for _, t := range s.topics {
		for i := range topicKeys {
			key := record{key: fmt.Sprintf("key%d", i)}.objectKey(t)
			state, e := c.state(ctx, "Recorder", key)
			if e != done {
				s.violate("stuck: %s is not readable", key)
				return
			}
			received[key] = fields(state["offsets"])
		}
	}
	s.checkRecords(received)
}

// replicaState is the contents of a replica.
type replicaState struct {
	index, term, sum uint64
	rows             int
}

func readReplicaState(tables *store.Partition) (p replicaState, err error) {
	e, err := tables.Export()
	if err != nil {
		return p, err
	}
	p.index, p.term = e.Applied()
	sum := fnv.New64a()
	err = e.Each(context.Background(), func(key, value []byte) error {
		p.rows++
		_, _ = sum.Write(key)
		_, _ = sum.Write(value)
		return nil
	})
	p.sum = sum.Sum64()
	return p, errors.Join(err, e.Close())
}

// checkReplicasEqual compares all replicas after they have applied the same entries.
func (s *Sim) checkReplicasEqual() {
	for id := range s.opts.Partitions {
		var pictures []replicaState
		same := s.waitUntil(responseTimeout, func() bool {
			pictures = nil
			for _, r := range s.table.replicas(id) {
				l := s.node(string(r.ID)).running()
				if l == nil {
					return false
				}
				tables, err := l.tables.Partition(id)
				if err != nil {
					return false
				}
				p, err := readReplicaState(tables)
				if err != nil {
					return false
				}
				pictures = append(pictures, p)
			}
			return !slices.ContainsFunc(pictures, func(p replicaState) bool { return p.index != pictures[0].index })
		})
		if !same {
			s.violate("stuck: the replicas of partition %d do not get to the same index: %+v", id, pictures)
			continue
		}
		for _, p := range pictures {
			if p != pictures[0] {
				s.violate("the replicas of partition %d differ: %+v", id, pictures)
				break
			}
		}
	}
}

// checkDuring checks the tables of all replicas periodically until end: the concurrency
// limit must hold at each index, and replicas at the same index must be equal.
func (s *Sim) checkDuring(end time.Time) {
	rng := newRand(s.seed, "observer")
	seen := map[[2]uint64]replicaState{} // by partition and index
	for time.Now().Before(end) {
		time.Sleep(time.Duration(50+rng.IntN(200)) * time.Millisecond)
		n := s.nodes[rng.IntN(len(s.nodes))]
		l := n.running()
		if l == nil {
			continue
		}
		if s.hasDefect(lostSync) && rng.IntN(8) == 0 {
			l.disk.save()
		}
		id := rng.Uint32N(s.opts.Partitions)
		if l.partition(id) == nil {
			continue
		}
		tables, err := l.tables.Partition(id)
		if err != nil {
			continue
		}
		s.checkLimit(n, id, tables)
		p, err := readReplicaState(tables)
		if err != nil {
			continue
		}
		at := [2]uint64{uint64(id), p.index}
		if other, known := seen[at]; known && other != p {
			s.violate("partition %d on %s at index %d is %+v, elsewhere %+v", id, n.name, p.index, p, other)
		}
		seen[at] = p
	}
}

// checkLimit checks the concurrency limit.
func (s *Sim) checkLimit(n *node, id uint32, tables *store.Partition) {
	view := tables.View()
	defer view.Close()
	if m, err := view.Meta(); err == nil {
		s.checkLevel(n, id, m.Level)
	}
	inside := 0
	for inv, err := range view.Live() {
		if err != nil {
			return
		}
		if inv.Target.Scope == limitedScope && inv.Status == machine.Invoked {
			inside++
		}
	}
	if inside > scopeLimit {
		s.violate("%d invocations run in a lane for %d, on %s", inside, scopeLimit, n.name)
	}
}
