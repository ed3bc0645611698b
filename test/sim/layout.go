package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

// table is the partition table: which replicas each partition is to have. Nodes learn of
// changes late.
type table struct {
	mu         sync.Mutex // covers partitions
	partitions [][]raft.Server
}

func server(name string, suffrage raft.ServerSuffrage) raft.Server {
	return raft.Server{ID: raft.ServerID(name), Address: raft.ServerAddress(addressOf(name)), Suffrage: suffrage}
}

// initialLayout draws the first replicas of each partition: three or, if there are five
// nodes, sometimes five voters, and mostly a replica without a vote if there are more.
func (s *Sim) initialLayout(rng *rand.Rand) {
	voters := 3
	if len(s.nodes) == 5 && rng.IntN(2) == 0 {
		voters = 5
	}
	for id := range s.opts.Partitions {
		var replicas []raft.Server
		for i := range voters {
			replicas = append(replicas, server(s.nodes[(int(id)+i)%len(s.nodes)].name, raft.Voter))
		}
		if voters < len(s.nodes) && rng.IntN(4) > 0 {
			replicas = append(replicas, server(s.nodes[(int(id)+voters)%len(s.nodes)].name, raft.Nonvoter))
		}
		s.table.partitions = append(s.table.partitions, replicas)
	}
}

func (t *table) replicas(id uint32) []raft.Server {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.partitions[id])
}

func (t *table) set(id uint32, replicas []raft.Server) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.partitions[id] = replicas
}

func votersOf(replicas []raft.Server) (voters []raft.Server) {
	for _, r := range replicas {
		if r.Suffrage == raft.Voter {
			voters = append(voters, r)
		}
	}
	return voters
}

func holds(replicas []raft.Server, name string) bool {
	return slices.ContainsFunc(replicas, func(r raft.Server) bool { return string(r.ID) == name })
}

// minVoters is how many voters each partition keeps.
const minVoters = 2

// move changes the partition table: a replica moves to another node, or a replica
// without a vote comes or goes, or gets or loses its vote.
func (s *Sim) move(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	replicas := s.table.replicas(id)
	var absent []string
	for _, name := range s.names() {
		if !holds(replicas, name) {
			absent = append(absent, name)
		}
	}
	i := rng.IntN(len(replicas))
	removable := replicas[i].Suffrage != raft.Voter || len(votersOf(replicas)) > minVoters
	switch kind := rng.IntN(6); {
	case kind < 3 && len(absent) > 0:
		replicas[i] = server(absent[rng.IntN(len(absent))], replicas[i].Suffrage)
	case kind == 3 && len(absent) > 0:
		replicas = append(replicas, server(absent[rng.IntN(len(absent))], raft.Nonvoter))
	case kind == 4 && removable && len(replicas) > minVoters:
		replicas = slices.Delete(replicas, i, i+1)
	case replicas[i].Suffrage != raft.Voter:
		replicas[i].Suffrage = raft.Voter
	case removable:
		replicas[i].Suffrage = raft.Nonvoter
	}
	s.trace.add("nemesis: partition %d is to be on %s", id, describeReplicas(replicas))
	s.table.set(id, replicas)
	return nil
}

// awayAndBack moves a replica to another node and back while another member is down, which then
// stands for election. The configuration that it knows names the first of the three replicas, and
// it must not get the vote of the last one, which has nothing of the log.
func (s *Sim) awayAndBack(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	home := s.table.replicas(id)
	voters := votersOf(home)
	absent := slices.DeleteFunc(s.names(), func(name string) bool { return holds(home, name) })
	if len(voters) <= minVoters || len(absent) == 0 {
		return nil
	}
	rng.Shuffle(len(voters), func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
	down, moving := s.node(string(voters[0].ID)), s.node(string(voters[1].ID))
	away := slices.Clone(home)
	away[slices.Index(away, voters[1])] = server(absent[rng.IntN(len(absent))], raft.Voter)
	s.trace.add("nemesis: %s is down while partition %d moves from %s to %s and back", down.name, id, moving.name, describeReplicas(away))
	down.crash(down.running(), 100)
	s.table.set(id, away)
	elections := 1 + rng.IntN(10)
	go func() {
		s.waitUntil(3*time.Second, func() bool { return !moving.serves(id) })
		s.table.set(id, home)
		s.waitUntil(time.Second, func() bool { return moving.serves(id) })
		s.restart(down)
		for range elections {
			s.triggerElection(down, id)
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return func() { s.restart(down) }
}

// serves reports whether a node has an open replica of a partition.
func (n *node) serves(id uint32) bool {
	l := n.running()
	return l != nil && l.partition(id) != nil
}

func describeReplicas(replicas []raft.Server) string {
	text := ""
	for _, r := range replicas {
		text += string(r.ID)
		if r.Suffrage != raft.Voter {
			text += "(learner)"
		}
	}
	return text
}

// learn updates what a node knows of the partition table and of the feature level.
func (n *node) learn() {
	level := n.sim.level.current()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.knownLevel = max(n.knownLevel, level)
	for id := range n.sim.opts.Partitions {
		n.knownTable[id] = n.sim.table.replicas(id)
	}
}

func (n *node) knownReplicas(id uint32) []raft.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.knownTable[id]
}

// followTable keeps the replicas of the node as the table says, as internal/node does,
// until the incarnation ends.
func (l *incarnation) followTable(rng *rand.Rand) {
	var wg sync.WaitGroup
	for id := range l.n.sim.opts.Partitions {
		rng := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		wg.Go(func() {
			for l.ctx.Err() == nil {
				l.reconcile(id)
				pause(l.ctx, 50*time.Millisecond+time.Duration(rng.Int64N(int64(100*time.Millisecond))))
			}
		})
	}
	for l.ctx.Err() == nil {
		pause(l.ctx, time.Duration(rng.Int64N(int64(500*time.Millisecond))))
		l.n.learn()
	}
	wg.Wait()
}

// reconcileTimeout limits one attempt, in which the table may change.
const reconcileTimeout = 1500 * time.Millisecond

// reconcile opens or removes the replica of a partition, or changes the members of a
// partition that it leads.
func (l *incarnation) reconcile(id uint32) {
	n, p := l.n, l.partition(id)
	replicas := n.knownReplicas(id)
	switch {
	case p == nil && holds(replicas, n.name):
		if err := l.openReplica(id); err != nil && l.ctx.Err() == nil {
			n.sim.violate("restart: %s: %v", n.name, err)
		}
	case p == nil:
	case p.Leading():
		ctx, cancel := context.WithTimeout(l.ctx, reconcileTimeout)
		defer cancel()
		_ = p.Reconcile(ctx, l.members(ctx, p, replicas)) // repeated
	case !holds(replicas, n.name):
		if l.removed(p) {
			l.remove(p)
		}
	}
}

// members returns the replicas of the table under their Raft server IDs.
func (l *incarnation) members(ctx context.Context, p *partition.Partition, replicas []raft.Server) []raft.Server {
	members := slices.Clone(replicas)
	for i, r := range members {
		if string(r.ID) == l.n.name {
			members[i].ID = p.LocalID()
			continue
		}
		members[i].ID = p.Status().ReplicaOn(r.ID, func() (raft.ServerID, bool) {
			_, stated, ok := l.ask(ctx, l.n.sim.node(string(r.ID)), p.ID())
			return stated, ok
		})
	}
	return members
}

// removed reports whether another node proves that a replica is no longer a member of its
// partition.
func (l *incarnation) removed(p *partition.Partition) bool {
	ctx, cancel := context.WithTimeout(l.ctx, reconcileTimeout)
	defer cancel()
	for _, other := range l.n.sim.nodes {
		if other == l.n {
			continue
		}
		if said, _, ok := l.ask(ctx, other, p.ID()); ok && p.Status().RemovedBy(said, p.LocalID()) {
			return true
		}
	}
	return false
}

// ask requests the status and the Raft server ID of another node's replica.
func (l *incarnation) ask(ctx context.Context, other *node, id uint32) (said partition.Status, replica raft.ServerID, ok bool) {
	net, name := l.n.sim.net, l.n.name
	if net.await(ctx, link{name, other.name}) != nil {
		return said, "", false
	}
	life := other.running()
	if life == nil {
		return said, "", false
	}
	p := life.partition(id)
	if p == nil {
		return said, "", false
	}
	said, replica = p.Status(), p.LocalID()
	return said, replica, net.await(ctx, link{other.name, name}) == nil
}

// remove removes a replica from its node.
func (l *incarnation) remove(p *partition.Partition) {
	l.n.sim.trace.add("%s removes its replica of partition %d", l.n.name, p.ID())
	l.setPartition(p.ID(), nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), closing)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		l.setPartition(p.ID(), p)
		return
	}
	if !l.removed(p) { // it was added again before it was stopped
		if err := l.openReplica(p.ID()); err != nil && l.ctx.Err() == nil {
			l.n.sim.violate("%s: open partition %d again: %v", l.n.name, p.ID(), err)
		}
		return
	}
	if err := l.destroy(ctx, p.ID()); err != nil && l.ctx.Err() == nil {
		l.n.sim.violate("%s: destroy partition %d: %v", l.n.name, p.ID(), err)
	}
}

func (l *incarnation) destroy(ctx context.Context, id uint32) error {
	hard, err := l.hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	if !l.n.sim.hasDefect(reusedServerID) {
		if err := hard.Retire(); err != nil {
			return err
		}
	}
	return partition.Destroy(ctx, l.logs, l.tables, hard, id)
}

// openReplica opens the replica of a partition if the node has it, or should have it.
func (l *incarnation) openReplica(id uint32) error {
	n := l.n
	logs, err := l.logs.Storage(partition.GroupID(id))
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	wanted := holds(n.knownReplicas(id), n.name)
	if last == 0 && !wanted {
		return nil
	}
	// Only the first start of all begins partitions.
	begins := l.number == 1 && last == 0 && !n.sim.started.Load()
	err = l.openPartition(id, logs, begins)
	if errors.Is(err, raftgroup.ErrLeaving) {
		if err := l.destroy(l.ctx, id); err != nil || !wanted {
			return err
		}
		err = l.openPartition(id, logs, false)
	}
	if err != nil {
		return fmt.Errorf("open partition %d: %w", id, err)
	}
	return nil
}

// misplaced describes a partition whose replicas are not those of the table, "" if there
// is none.
func (s *Sim) misplaced() string {
	for id := range s.opts.Partitions {
		desired := s.table.replicas(id)
		leader := s.leader(id)
		if leader == nil {
			return fmt.Sprintf("partition %d without a leader", id)
		}
		for _, n := range s.nodes {
			l := n.running()
			if l == nil {
				return n.name + " is down"
			}
			p := l.partition(id)
			if (p != nil) != holds(desired, n.name) {
				return fmt.Sprintf("partition %d is to be on %s: replica on %s: %v", id, describeReplicas(desired), n.name, p != nil)
			}
			if n == leader && !sameReplicas(p.Status().Members.Servers, desired) {
				return fmt.Sprintf("partition %d is to be on %s, it is on %s", id, describeReplicas(desired), describeReplicas(p.Status().Members.Servers))
			}
		}
	}
	return ""
}

// sameReplicas reports whether the members of a partition are on the nodes that the table
// names.
func sameReplicas(members, desired []raft.Server) bool {
	return len(members) == len(desired) && !slices.ContainsFunc(members, func(s raft.Server) bool {
		s.ID, _ = metadata.ReplicaNode(s.ID)
		return !slices.Contains(desired, s)
	})
}
