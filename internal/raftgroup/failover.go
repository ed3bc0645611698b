package raftgroup

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// A peer whose connection broke is dialed again after these delays, until the
// dial is refused. An accepted dial may be an accident: the kernel closes the
// sockets of a killed process one after another.
var redialDelays = []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond}

const redialTimeout = 250 * time.Millisecond

// peerLost is called when a stream from addr broke. If nothing listens there any
// more the process is dead, and the groups it led need not wait for the election
// time-out. That is a hint about when to stand for election; whether one wins is
// Raft's decision.
func (t *Transport) peerLost(addr raft.ServerAddress) {
	t.mu.RLock()
	led := slices.Collect(maps.Values(t.ports))
	t.mu.RUnlock()
	// Not under mu: a group that is being opened holds its own lock and wants mu.
	led = slices.DeleteFunc(led, func(p *port) bool { return !p.group.leaderAt(addr) })
	if len(led) == 0 || addr == t.cfg.Address {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.probed[addr] {
		return
	}
	t.probed[addr] = true
	t.wg.Go(func() {
		refused := t.dialRefused(addr)
		t.mu.Lock()
		delete(t.probed, addr)
		t.mu.Unlock()
		if !refused {
			return
		}
		t.log.Warn("process of the leader is gone", "address", string(addr), "groups", len(led))
		for _, p := range led {
			t.wg.Go(func() { p.group.succeed(addr) })
		}
	})
}

// dialRefused reports whether the host at addr answers and nobody listens.
func (t *Transport) dialRefused(addr raft.ServerAddress) bool {
	dialer := net.Dialer{Timeout: redialTimeout}
	for _, delay := range redialDelays {
		select {
		case <-time.After(delay):
		case <-t.ctx.Done():
			return false
		}
		conn, err := dialer.DialContext(t.ctx, "tcp", string(addr))
		if err != nil {
			return errors.Is(err, syscall.ECONNREFUSED)
		}
		_ = conn.Close()
	}
	return false
}

// leaderAt reports whether the group's leader is the node at addr.
func (g *Group) leaderAt(addr raft.ServerAddress) bool {
	inst := g.current()
	if inst == nil { // was not opened
		return false
	}
	leader, _ := inst.raft.LeaderWithID()
	return leader == addr
}

// succeed stands for election in place of the dead leader at addr, unless another
// survivor was faster. Each survivor waits a little longer than the one before it;
// longer still once it has voted for that one, which will make itself known as soon
// as its disk allows; and no longer once it has refused that one its vote, because
// then its own log is better. It stands again only for that last reason: to do so
// without one would depose whoever was elected and has not been heard yet.
func (g *Group) succeed(addr raft.ServerAddress) {
	_, dead := g.current().raft.LeaderWithID()
	rank, ok := g.successionRank(dead)
	if !ok {
		return
	}
	election := g.cfg.Profile.ElectionTimeout
	ctx, cancel := context.WithTimeout(g.port.ctx, 2*election)
	defer cancel()
	g.port.forgetVotes() // of an earlier election
	step := g.cfg.Profile.FailoverStep
	for wait := time.Duration(rank) * step; g.port.awaitTurn(ctx, wait, 2*step); wait = 2 * election {
		r := g.current().raft
		if leader, _ := r.LeaderWithID(); r.State() == raft.Leader || (leader != "" && leader != addr) {
			return
		}
		if r.State() == raft.Follower { // a candidate has votes under way
			g.port.timeoutNow(election)
		}
	}
}

// votes are signals of how the local replica has answered candidates.
type votes struct {
	granted, refused chan struct{}
}

func newVotes() votes { return votes{make(chan struct{}, 1), make(chan struct{}, 1)} }

// note remembers an answer, if somebody is to know of it.
func (v votes) note(granted bool) {
	signal := v.refused
	if granted {
		signal = v.granted
	}
	select {
	case signal <- struct{}{}:
	default:
	}
}

func (v votes) forgetVotes() {
	for _, signal := range []chan struct{}{v.granted, v.refused} {
		select {
		case <-signal:
		default:
		}
	}
}

// awaitTurn waits until it is this replica's turn to stand for election: after wait,
// after grace from its last vote for another one, or at once when it has refused
// its vote. It returns false if ctx ended first.
func (v votes) awaitTurn(ctx context.Context, wait, grace time.Duration) bool {
	turn := time.NewTimer(wait)
	defer turn.Stop()
	for {
		select {
		case <-v.granted:
			if wait > grace { // stood before
				continue
			}
			turn.Reset(grace)
		case <-v.refused:
			return true
		case <-turn.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// successionRank is the local replica's place among the surviving voters. The
// order is rotated by group, so that one survivor does not inherit all groups.
func (g *Group) successionRank(dead raft.ServerID) (int, bool) {
	var ids []raft.ServerID
	for _, s := range g.Servers() {
		if s.Suffrage == raft.Voter && s.ID != dead {
			ids = append(ids, s.ID)
		}
	}
	slices.SortFunc(ids, func(a, b raft.ServerID) int { return cmp.Compare(a, b) })
	i := slices.Index(ids, g.cfg.LocalID)
	if i < 0 {
		return 0, false
	}
	first := int(g.cfg.ID % uint32(len(ids)))
	return (i - first + len(ids)) % len(ids), true
}
