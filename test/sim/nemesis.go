package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// fault is a kind of fault. inject returns a function that removes it, nil if none is needed.
type fault struct {
	name   string
	weight int
	inject func(s *Sim, rng *rand.Rand) (undo func())
}

var faults = []fault{
	{"hold one direction", 4, (*Sim).holdLink},
	{"isolate a node", 4, (*Sim).isolate},
	{"split", 2, (*Sim).split},
	{"pause a node", 4, (*Sim).pauseNode},
	{"lose messages", 4, (*Sim).loseMessages},
	{"delay messages", 3, (*Sim).delayLink},
	{"slow disk", 2, (*Sim).slowDisk},
	{"crash", 5, (*Sim).crashOne},
	{"crash all", 1, (*Sim).crashAll},
	{"crash in a sync", 4, (*Sim).crashInSync},
	{"transfer", 4, (*Sim).transfer},
	{"failing transfer", 2, (*Sim).failTransfer},
	{"step a clock", 2, (*Sim).stepClock},
	{"checkpoint", 4, (*Sim).checkpoint},
	{"silence a leader", 4, (*Sim).silenceLeader},
	{"election", 2, (*Sim).forceElection},
	{"election without inbound messages", 5, (*Sim).electWithoutInbound},
	{"elections in turn", 3, (*Sim).electInTurn},
	{"move", 6, (*Sim).move},
	{"away and back", 2, (*Sim).awayAndBack},
	{"upgrade", 3, (*Sim).upgrade},
	{"suspend", 1, (*Sim).suspend},
	{"change the rules", 4, (*Sim).changeRules},
}

// drawFaults returns the faults of a seed. Two seeds in three have only some kinds, which
// meet more often than if there were all.
func drawFaults(rng *rand.Rand, names []string) []fault {
	if names != nil {
		return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !slices.Contains(names, f.name) })
	}
	if rng.IntN(3) == 0 {
		return faults
	}
	n := 2 + rng.IntN(5)
	var drawn []fault
	for len(drawn) < n {
		drawn = append(drawn, *pickFault(rng, faults))
	}
	return drawn
}

func pickFault(rng *rand.Rand, from []fault) *fault {
	total := 0
	for i := range from {
		total += from[i].weight
	}
	n := rng.IntN(total)
	for i := range from {
		if n -= from[i].weight; n < 0 {
			return &from[i]
		}
	}
	panic("unreachable")
}

// nemesis injects faults until end. Several faults may be active at a time.
func (s *Sim) nemesis(end time.Time) {
	rng := newRand(s.seed, "nemesis")
	drawn := drawFaults(rng, s.opts.FaultKinds)
	interval := time.Duration(400+rng.IntN(2000)) * time.Millisecond
	for {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(interval)))
		if !time.Now().Before(end) {
			return
		}
		f := pickFault(rng, drawn)
		duration := time.Duration(rng.ExpFloat64() * float64(1500*time.Millisecond))
		faultRand := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		s.trace.add("nemesis: %s for %s", f.name, duration.Round(time.Millisecond))
		if undo := f.inject(s, faultRand); undo != nil {
			time.AfterFunc(duration, func() {
				s.trace.add("nemesis: end of %s", f.name)
				undo()
			})
		}
	}
}

// heal removes all faults and starts all nodes.
func (s *Sim) heal() {
	for _, w := range s.allLinks() {
		s.net.set(w, func(x *conditions) { *x = conditions{} })
	}
	for _, n := range s.nodes {
		n.mu.Lock()
		n.disk.setSyncDelay(defaultSyncDelay)
		n.skew = 0
		n.mu.Unlock()
		s.startUpgraded(n)
	}
	s.endPauses()
}

// restart starts a node that is down.
func (s *Sim) restart(n *node) {
	if n.running() != nil {
		return
	}
	n.starting.Lock()
	defer n.starting.Unlock()
	if n.running() != nil {
		return
	}
	if err := n.start(); err != nil {
		s.violate("restart: %v", err)
	}
}

func (s *Sim) node(name string) *node {
	for _, n := range s.nodes {
		if n.name == name {
			return n
		}
	}
	panic("no node " + name)
}

func (s *Sim) names() (all []string) {
	for _, n := range s.nodes {
		all = append(all, n.name)
	}
	return all
}

func (s *Sim) allLinks() (all []link) {
	ends := append(s.names(), services, "client")
	for _, a := range ends {
		for _, b := range ends {
			if a != b {
				all = append(all, link{a, b})
			}
		}
	}
	return all
}

// apply changes the conditions of links and returns a function that resets them.
func (s *Sim) apply(ways []link, change func(*conditions)) func() {
	for _, w := range ways {
		s.net.set(w, change)
	}
	return func() {
		for _, w := range ways {
			s.net.set(w, func(x *conditions) { *x = conditions{} })
		}
	}
}

func hold(w *conditions) { w.held = true }

func (s *Sim) randomNode(rng *rand.Rand) *node { return s.nodes[rng.IntN(len(s.nodes))] }

// randomLink returns a random link between two nodes.
func (s *Sim) randomLink(rng *rand.Rand) link {
	i := rng.IntN(len(s.nodes))
	j := (i + 1 + rng.IntN(len(s.nodes)-1)) % len(s.nodes)
	return link{s.nodes[i].name, s.nodes[j].name}
}

func (s *Sim) holdLink(rng *rand.Rand) func() { return s.apply([]link{s.randomLink(rng)}, hold) }

// linksOf returns the links of a node to and from the other nodes.
func (s *Sim) linksOf(name string) (all []link) {
	for _, other := range s.names() {
		if other != name {
			all = append(all, link{name, other}, link{other, name})
		}
	}
	return all
}

func (s *Sim) isolate(rng *rand.Rand) func() { return s.apply(s.linksOf(s.randomNode(rng).name), hold) }

func (s *Sim) split(rng *rand.Rand) func() {
	names := s.names()
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	k := 1 + rng.IntN(len(names)-1)
	var links []link
	for _, a := range names[:k] {
		for _, b := range names[k:] {
			links = append(links, link{a, b}, link{b, a})
		}
	}
	return s.apply(links, hold)
}

// pauseNode holds all messages of a node. Its goroutines continue.
func (s *Sim) pauseNode(rng *rand.Rand) func() {
	name := s.randomNode(rng).name
	ways := append(s.linksOf(name), link{name, services}, link{services, name}, link{name, "client"}, link{"client", name})
	return s.apply(ways, hold)
}

func (s *Sim) loseMessages(rng *rand.Rand) func() {
	loss, reorder := rng.Float64()/2, rng.IntN(2) == 0
	ways := []link{s.randomLink(rng)}
	if rng.IntN(2) == 0 {
		ways = s.linksOf(ways[0].from)
	}
	return s.apply(ways, func(w *conditions) { w.loss, w.reorder = loss, reorder })
}

func (s *Sim) delayLink(rng *rand.Rand) func() {
	d := time.Duration(1+rng.IntN(300)) * time.Millisecond
	return s.apply([]link{s.randomLink(rng)}, func(w *conditions) { w.delay = d })
}

func (s *Sim) slowDisk(rng *rand.Rand) func() {
	n := s.randomNode(rng)
	lag := time.Duration(1+rng.IntN(400)) * time.Millisecond
	if rng.IntN(6) == 0 {
		lag = 4 * time.Second // long enough for the watchdog to detect
	}
	n.slowDisk(lag)
	return func() { n.slowDisk(defaultSyncDelay) }
}

// unsyncedPercents are percentages of unsynced data that survive a crash.
var unsyncedPercents = []int{0, 0, 50, 100, 100}

func (s *Sim) crashOne(rng *rand.Rand) func() {
	n := s.randomNode(rng)
	n.crash(n.running(), unsyncedPercents[rng.IntN(len(unsyncedPercents))])
	return func() { s.restart(n) }
}

// crashInSync crashes a node in one of its next syncs. Half of the time these include those of a
// vote.
func (s *Sim) crashInSync(rng *rand.Rand) func() {
	n := s.randomNode(rng)
	l := n.running()
	if l == nil {
		return nil
	}
	unsynced := unsyncedPercents[rng.IntN(len(unsyncedPercents))]
	l.disk.crashInSync(1+rng.IntN(8), func() { n.crash(l, unsynced) })
	if rng.IntN(2) == 0 {
		s.forceElection(rng)
	}
	return func() {
		l.disk.crashInSync(0, nil)
		s.restart(n)
	}
}

func (s *Sim) crashAll(rng *rand.Rand) func() {
	unsynced := unsyncedPercents[rng.IntN(len(unsyncedPercents))]
	for _, n := range s.nodes {
		n.crash(n.running(), unsynced)
	}
	return func() {
		for _, n := range s.nodes {
			s.restart(n)
		}
	}
}

func (s *Sim) transfer(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	n := s.leader(id)
	if n == nil {
		return nil
	}
	s.transferFrom(n, id, s.randomNode(rng))
	return nil
}

// transferFrom starts a transfer of leadership to a node, which may not have a replica.
func (s *Sim) transferFrom(n *node, id uint32, to *node) {
	s.trace.add("nemesis: partition %d from %s to %s", id, n.name, to.name)
	s.suspectFor(n, suspicionPeriod)
	if l := n.running(); l != nil && to != n {
		p := l.partition(id)
		go func() {
			ctx, cancel := context.WithTimeout(l.ctx, 3*time.Second)
			defer cancel()
			_ = p.TransferLeadership(ctx, raft.ServerID(to.name))
		}()
	}
}

// failTransfer starts a transfer of leadership while the disks of the followers are so slow that it fails, and that
// entries which were proposed before it are still in flight then.
func (s *Sim) failTransfer(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	n := s.leader(id)
	if n == nil {
		return nil
	}
	for _, other := range s.nodes {
		if other != n {
			other.slowDisk(time.Duration(500+rng.IntN(2000)) * time.Millisecond)
		}
	}
	to := s.randomNode(rng)
	delay := time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
	time.AfterFunc(delay, func() { s.transferFrom(n, id, to) })
	return func() {
		for _, other := range s.nodes {
			other.slowDisk(defaultSyncDelay)
		}
	}
}

func (s *Sim) stepClock(rng *rand.Rand) func() {
	n := s.randomNode(rng)
	skew := time.Duration(rng.Int64N(int64(8*time.Second))) - 4*time.Second
	s.trace.add("nemesis: the clock of %s has offset %s", n.name, skew.Round(time.Millisecond))
	s.noteSkew(skew)
	n.step(skew)
	return func() { n.step(0) }
}

// noteSkew records the range of clock offsets.
func (s *Sim) noteSkew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minSkew, s.maxSkew = min(s.minSkew, d), max(s.maxSkew, d)
}

// maxSleepError returns by how much a sleep may be too short. A leader whose clock is ahead
// underestimates the rest of a sleep by its offset, and the next leader advances the time of
// the partition by as much. (Servers correct their clocks by gossip.)
func (s *Sim) maxSleepError() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2 * (s.maxSkew - s.minSkew)
}

func (s *Sim) checkpoint(rng *rand.Rand) func() {
	n := s.randomNode(rng)
	l := n.running()
	if l == nil {
		return nil
	}
	only := rng.Uint32N(s.opts.Partitions)
	all := rng.IntN(2) == 0
	for id := range s.opts.Partitions {
		if p := l.partition(id); p != nil && (all || id == only) {
			go func() {
				ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second)
				defer cancel()
				_ = p.Checkpoint(ctx)
			}()
		}
	}
	return nil
}

// silenceLeader holds the messages of a leader to the others, which elect another one, or
// the messages of the others to it.
func (s *Sim) silenceLeader(rng *rand.Rand) func() {
	n := s.leader(rng.Uint32N(s.opts.Partitions))
	if n == nil {
		return nil
	}
	inbound := rng.IntN(3) == 0
	ways := slices.DeleteFunc(s.linksOf(n.name), func(w link) bool { return (w.from == n.name) == inbound })
	s.trace.add("nemesis: %s, %s", n.name, fmt.Sprint(ways))
	s.suspectFor(n, 2*time.Second)
	return s.apply(ways, hold)
}
