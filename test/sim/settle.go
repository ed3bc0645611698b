package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"platform/internal/fabric"
	"platform/partition"
	"platform/partition/machine"
	"platform/partition/store"
)

const (
	// quietWithin is how long the cluster may take, once it is well, to bring to an end
	// all that is open.
	quietWithin = 45 * time.Second
	// answersWithin is how long it may take to answer anything then.
	answersWithin = 40 * time.Second
)

// settle brings a cluster that is well to rest and checks what it holds.
func (s *Sim) settle(ctx context.Context) {
	if !s.until(answersWithin, s.led) {
		s.violate("stuck: not all partitions are led %s after the last fault", answersWithin)
		return
	}
	open := ""
	if !s.until(quietWithin, func() bool { open = s.unfinished(); return open == "" }) {
		s.violate("stuck: %s after the last fault there is still %s", quietWithin, open)
	}
	s.trace.add("at rest")
	c := s.newClient(clients)
	s.resolve(ctx, c)
	s.finalReads(ctx, c)
	s.checkSame()
}

// unfinished is what a leader still owes, empty if nothing.
func (s *Sim) unfinished() string {
	for id := range s.opts.Partitions {
		n := s.leader(id)
		if n == nil {
			return fmt.Sprintf("partition %d without a leader", id)
		}
		l := n.now()
		if l == nil {
			return "a node that is down"
		}
		if what := l.owes(id); what != "" {
			return fmt.Sprintf("%s in partition %d", what, id)
		}
	}
	return ""
}

func (l *life) owes(id uint32) string {
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
		if l.n.sim.history.mayWait(inv.ID) {
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

// resolve finds out what became of additions whose clients got no answer.
func (s *Sim) resolve(ctx context.Context, c *client) {
	for _, op := range s.history.ops {
		if op.Delta == 0 || op.State != unknown {
			continue
		}
		owner := s.owner(op.ID)
		inv, e, err := insist(ctx, c, func(ctx context.Context, d *fabric.Directory) (*machine.Invocation, error) {
			return d.Partition(owner).Find(ctx, op.ID)
		})
		switch {
		case e != done:
			s.violate("stuck: %s is not answered by a cluster that is well: %v", op, err)
		case errors.Is(err, partition.ErrNotFound):
			op.State = failed
		case inv.Status == machine.Completed:
			op.State, op.Late, op.Got = done, true, number(valueOf(inv.Result))
		}
		s.trace.add("resolved: %s", op)
	}
}

// finalReads reads everything once more.
func (s *Sim) finalReads(ctx context.Context, c *client) {
	for i := range counters {
		c.look(ctx, counterKey(i))
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
}

// picture is what a replica holds.
type picture struct {
	index, term, sum uint64
	rows             int
}

func pictureOf(tables *store.Partition) (p picture, err error) {
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

// checkSame compares all replicas once they have applied the same.
func (s *Sim) checkSame() {
	for id := range s.opts.Partitions {
		var pictures []picture
		same := s.until(answersWithin, func() bool {
			pictures = nil
			for _, n := range s.nodes {
				l := n.now()
				if l == nil {
					return false
				}
				tables, err := l.tables.Partition(id)
				if err != nil {
					return false
				}
				p, err := pictureOf(tables)
				if err != nil {
					return false
				}
				pictures = append(pictures, p)
			}
			return !slices.ContainsFunc(pictures, func(p picture) bool { return p.index != pictures[0].index })
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

// observe looks at the tables of all replicas now and then until a time: the limit of
// the lane holds at each index, and replicas at the same index are the same.
func (s *Sim) observe(end time.Time) {
	rng := chance(s.seed, "observer")
	seen := map[[2]uint64]picture{} // by partition and index
	for time.Now().Before(end) {
		time.Sleep(time.Duration(50+rng.IntN(200)) * time.Millisecond)
		n := s.nodes[rng.IntN(len(s.nodes))]
		l := n.now()
		if l == nil {
			continue
		}
		if s.planted(lostSync) && rng.IntN(8) == 0 {
			l.disk.remember()
		}
		id := rng.Uint32N(s.opts.Partitions)
		tables, err := l.tables.Partition(id)
		if err != nil {
			continue
		}
		s.checkLane(n.name, tables)
		p, err := pictureOf(tables)
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

// checkLane counts who is in the lane.
func (s *Sim) checkLane(node string, tables *store.Partition) {
	view := tables.View()
	defer view.Close()
	inside := 0
	for inv, err := range view.Live() {
		if err != nil {
			return
		}
		if inv.Target.Scope == lane && inv.Status == machine.Invoked {
			inside++
		}
	}
	if inside > laneLimit {
		s.violate("%d invocations run in a lane for %d, on %s", inside, laneLimit, node)
	}
}
