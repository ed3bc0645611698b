package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// fault is what the nemesis may do. It returns how to undo it, nil for nothing to undo.
type fault struct {
	name   string
	weight int
	do     func(s *Sim, rng *rand.Rand) (undo func())
}

var faults = []fault{
	{"hold one direction", 4, (*Sim).holdOne},
	{"isolate a node", 4, (*Sim).isolate},
	{"split", 2, (*Sim).split},
	{"pause a node", 4, (*Sim).pauseNode},
	{"lose messages", 4, (*Sim).lose},
	{"slow way", 3, (*Sim).slowWay},
	{"slow disk", 2, (*Sim).slowDisk},
	{"crash", 5, (*Sim).crashOne},
	{"crash all", 1, (*Sim).crashAll},
	{"transfer", 4, (*Sim).transfer},
	{"step a clock", 2, (*Sim).stepClock},
	{"checkpoint", 4, (*Sim).checkpoint},
	{"silence a leader", 4, (*Sim).silenceLeader},
	{"election", 2, (*Sim).forceElection},
	{"coup", 5, (*Sim).coup},
}

func pick(rng *rand.Rand) *fault {
	total := 0
	for i := range faults {
		total += faults[i].weight
	}
	n := rng.IntN(total)
	for i := range faults {
		if n -= faults[i].weight; n < 0 {
			return &faults[i]
		}
	}
	panic("unreachable")
}

// nemesis breaks things until a time. Several faults may be in force at once.
func (s *Sim) nemesis(end time.Time) {
	rng := chance(s.seed, "nemesis")
	pace := time.Duration(400+rng.IntN(2000)) * time.Millisecond
	for {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(pace)))
		if !time.Now().Before(end) {
			return
		}
		f := pick(rng)
		lasts := time.Duration(rng.ExpFloat64() * float64(1500*time.Millisecond))
		own := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		s.trace.add("nemesis: %s for %s", f.name, lasts.Round(time.Millisecond))
		if undo := f.do(s, own); undo != nil {
			time.AfterFunc(lasts, func() {
				s.trace.add("nemesis: end of %s", f.name)
				undo()
			})
		}
	}
}

// heal ends all faults and starts all nodes.
func (s *Sim) heal() {
	for _, w := range s.allWays() {
		s.net.set(w, func(x *weather) { *x = weather{} })
	}
	for _, n := range s.nodes {
		n.mu.Lock()
		n.disk.slow(usualLag)
		n.skew = 0
		n.mu.Unlock()
		s.restart(n)
	}
}

// restart starts a node that is down.
func (s *Sim) restart(n *node) {
	if n.now() != nil {
		return
	}
	n.starting.Lock()
	defer n.starting.Unlock()
	if n.now() != nil {
		return
	}
	if err := n.start(); err != nil {
		s.violate("restart: %v", err)
	}
}

func (s *Sim) names() (all []string) {
	for _, n := range s.nodes {
		all = append(all, n.name)
	}
	return all
}

func (s *Sim) allWays() (all []way) {
	ends := append(s.names(), services, "client")
	for _, a := range ends {
		for _, b := range ends {
			if a != b {
				all = append(all, way{a, b})
			}
		}
	}
	return all
}

// weather changes ways and returns how to change them back.
func (s *Sim) weather(ways []way, change func(*weather)) func() {
	for _, w := range ways {
		s.net.set(w, change)
	}
	return func() {
		for _, w := range ways {
			s.net.set(w, func(x *weather) { *x = weather{} })
		}
	}
}

func hold(w *weather) { w.held = true }

func (s *Sim) any(rng *rand.Rand) *node { return s.nodes[rng.IntN(len(s.nodes))] }

// pairs are the ways between two nodes, in one direction.
func (s *Sim) pair(rng *rand.Rand) way {
	i := rng.IntN(len(s.nodes))
	j := (i + 1 + rng.IntN(len(s.nodes)-1)) % len(s.nodes)
	return way{s.nodes[i].name, s.nodes[j].name}
}

func (s *Sim) holdOne(rng *rand.Rand) func() { return s.weather([]way{s.pair(rng)}, hold) }

// around are the ways of a node, to and from the other nodes.
func (s *Sim) around(name string) (all []way) {
	for _, other := range s.names() {
		if other != name {
			all = append(all, way{name, other}, way{other, name})
		}
	}
	return all
}

func (s *Sim) isolate(rng *rand.Rand) func() { return s.weather(s.around(s.any(rng).name), hold) }

func (s *Sim) split(rng *rand.Rand) func() {
	names := s.names()
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	k := 1 + rng.IntN(len(names)-1)
	var cut []way
	for _, a := range names[:k] {
		for _, b := range names[k:] {
			cut = append(cut, way{a, b}, way{b, a})
		}
	}
	return s.weather(cut, hold)
}

// pauseNode holds everything that a node says or hears. Its goroutines go on, as far as
// they need nobody.
func (s *Sim) pauseNode(rng *rand.Rand) func() {
	name := s.any(rng).name
	ways := append(s.around(name), way{name, services}, way{services, name}, way{name, "client"}, way{"client", name})
	return s.weather(ways, hold)
}

func (s *Sim) lose(rng *rand.Rand) func() {
	share, shuffle := rng.Float64()/2, rng.IntN(2) == 0
	ways := []way{s.pair(rng)}
	if rng.IntN(2) == 0 {
		ways = s.around(ways[0].from)
	}
	return s.weather(ways, func(w *weather) { w.loss, w.shuffle = share, shuffle })
}

func (s *Sim) slowWay(rng *rand.Rand) func() {
	d := time.Duration(1+rng.IntN(300)) * time.Millisecond
	return s.weather([]way{s.pair(rng)}, func(w *weather) { w.slow = d })
}

func (s *Sim) slowDisk(rng *rand.Rand) func() {
	n := s.any(rng)
	lag := time.Duration(1+rng.IntN(400)) * time.Millisecond
	if rng.IntN(6) == 0 {
		lag = 4 * time.Second // long enough for the watchdog to see it
	}
	n.slowDisk(lag)
	return func() { n.slowDisk(usualLag) }
}

// shares of what was not synced that a crash leaves behind.
var unsynced = []int{0, 0, 50, 100, 100}

func (s *Sim) crashOne(rng *rand.Rand) func() {
	n := s.any(rng)
	n.crash(n.now(), unsynced[rng.IntN(len(unsynced))])
	return func() { s.restart(n) }
}

func (s *Sim) crashAll(rng *rand.Rand) func() {
	kept := unsynced[rng.IntN(len(unsynced))]
	for _, n := range s.nodes {
		n.crash(n.now(), kept)
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
	to := s.any(rng).name
	s.trace.add("nemesis: partition %d from %s to %s", id, n.name, to)
	if l := n.now(); l != nil && to != n.name {
		p := l.partition(id)
		go func() {
			ctx, cancel := context.WithTimeout(l.ctx, 3*time.Second)
			defer cancel()
			_ = p.TransferLeadership(ctx, raft.ServerID(to))
		}()
	}
	return nil
}

func (s *Sim) stepClock(rng *rand.Rand) func() {
	n := s.any(rng)
	skew := time.Duration(rng.Int64N(int64(8*time.Second))) - 4*time.Second
	s.trace.add("nemesis: the clock of %s is off by %s", n.name, skew.Round(time.Millisecond))
	s.noteSkew(skew)
	n.step(skew)
	return func() { n.step(0) }
}

// noteSkew remembers how far clocks were from the truth, in both directions.
func (s *Sim) noteSkew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind, s.ahead = min(s.behind, d), max(s.ahead, d)
}

// skewed is by how much a sleep may be too short. A leader whose clock is ahead takes
// what is left of a sleep for less than it is, by that much, and the next leader sets the
// time of the partition forward by as much. (Servers correct their clocks by gossip.)
func (s *Sim) skewed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 2 * (s.ahead - s.behind)
}

func (s *Sim) checkpoint(rng *rand.Rand) func() {
	n := s.any(rng)
	l := n.now()
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

// silenceLeader holds what a leader says to the others, who elect another one while
// the former one still hears them, or the reverse.
func (s *Sim) silenceLeader(rng *rand.Rand) func() {
	n := s.leader(rng.Uint32N(s.opts.Partitions))
	if n == nil {
		return nil
	}
	inward := rng.IntN(3) == 0
	ways := slices.DeleteFunc(s.around(n.name), func(w way) bool { return (w.from == n.name) == inward })
	s.trace.add("nemesis: %s, %s", n.name, fmt.Sprint(ways))
	return s.weather(ways, hold)
}
