package raftgroup

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"platform/proto/node"

	"github.com/hashicorp/raft"
)

// A peer whose connection broke is dialed again after these delays, until the
// dial is refused. One that is accepted or times out may be an accident: the kernel
// takes its time to close the sockets of a killed process.
var redialDelays = []time.Duration{
	0, 2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond,
}

const redialTimeout = 250 * time.Millisecond

// peerLost is called when a stream from addr broke. If nothing listens there any
// more the process is dead, and the groups it led need not wait for the election
// time-out. That is a hint about when to stand for election; whether one wins is
// Raft's decision.
func (t *Transport) peerLost(addr raft.ServerAddress) {
	led := t.attached()
	// Not under mu: a group that is being opened holds its own lock and wants mu.
	led = slices.DeleteFunc(led, func(p *port) bool { return !p.group.ledFrom(addr) })
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
		t.log.Info("process of the leader is gone", "address", string(addr), "groups", len(led))
		for _, p := range led {
			t.wg.Go(func() { p.group.succeed(addr) })
		}
	})
}

// dialRefused reports whether the host at addr answers and nobody listens.
func (t *Transport) dialRefused(addr raft.ServerAddress) bool {
	refused := t.cfg.Refused
	if refused == nil {
		refused = tcpRefused
	}
	for _, delay := range redialDelays {
		select {
		case <-time.After(delay):
		case <-t.ctx.Done():
			return false
		}
		if refused(t.ctx, addr) {
			return true
		}
	}
	return false
}

// tcpRefused dials addr once and reports whether nobody listens there.
func tcpRefused(ctx context.Context, addr raft.ServerAddress) bool {
	dialer := net.Dialer{Timeout: redialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", string(addr))
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// ledFrom reports whether the group's leader is the node at addr, or may be: one that
// dies right after its election, or while it stands, is not known yet.
func (g *Group) ledFrom(addr raft.ServerAddress) bool {
	inst := g.current()
	if inst == nil { // was not opened
		return false
	}
	leader, _ := inst.raft.LeaderWithID()
	return leader == addr || leader == "" && g.voterAt(addr) != ""
}

// voterAt is the voter on the node at addr, "" if there is none.
func (g *Group) voterAt(addr raft.ServerAddress) raft.ServerID {
	for _, s := range g.Servers() {
		if s.Suffrage == raft.Voter && g.port.target(s.ID, s.Address).addr == addr {
			return s.ID
		}
	}
	return ""
}

// succeed stands for election in place of the dead leader at addr, unless another
// survivor was faster. Each survivor waits a little longer than the one before it, and
// longer still once it has voted for that one, which will make itself known as soon
// as its disk allows. It stands once: to do so again would depose whoever was
// elected and has not been heard yet.
func (g *Group) succeed(addr raft.ServerAddress) {
	rank, ok := g.successionRank(g.voterAt(addr))
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(g.port.ctx, 2*g.cfg.Profile.ElectionTimeout)
	defer cancel()
	g.port.forgetVote() // of an earlier election
	step := g.cfg.Profile.FailoverStep
	if !g.port.awaitTurn(ctx, time.Duration(rank)*step, 2*step) {
		return
	}
	r := g.current().raft
	if leader, _ := r.LeaderWithID(); leader == "" || leader == addr {
		g.stand(r)
	}
}

// stand makes a follower stand for election at once; a candidate has votes under way.
func (g *Group) stand(r *raft.Raft) {
	if r.State() == raft.Follower {
		g.port.timeoutNow(g.cfg.Profile.ElectionTimeout)
	}
}

// outbid stands for election after this replica has refused its vote to a survivor
// whose log is worse than its own: that one cannot win without it, and has set
// the term, so that nobody else is known to lead. It does not matter whether this
// node has noticed by itself that the leader is dead. A replica that was stopped or cut
// off does not stand: the request may be old, and the candidate may have won since.
func (g *Group) outbid(req *node.VoteRequest, resp *node.VoteResponse) {
	r := g.current().raft
	if !g.port.t.run.steadily(time.Now()) || !g.port.silence.inTouch(g.cfg.Profile.HeartbeatTimeout+g.cfg.Profile.ElectionTimeout) {
		return
	}
	if resp.Granted || !req.LeadershipTransfer || resp.Term != req.Term || r.CurrentTerm() != req.Term {
		return
	}
	if leader, _ := r.LeaderWithID(); leader == "" && betterLog(r.Stats(), req) {
		g.stand(r)
	}
}

// betterLog reports whether the log that stats tell of has something that the log of
// the candidate has not.
func betterLog(stats map[string]string, candidate *node.VoteRequest) bool {
	index, err1 := strconv.ParseUint(stats["last_log_index"], 10, 64)
	term, err2 := strconv.ParseUint(stats["last_log_term"], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	return cmp.Or(cmp.Compare(term, candidate.LastLogTerm), cmp.Compare(index, candidate.LastLogIndex)) > 0
}

// voted is a signal that the local replica has given its vote away.
type voted chan struct{}

// note remembers a vote, if somebody is to know of it.
func (v voted) note() {
	select {
	case v <- struct{}{}:
	default:
	}
}

func (v voted) forgetVote() {
	select {
	case <-v:
	default:
	}
}

// awaitTurn waits until it is this replica's turn to stand for election: after wait,
// or after grace from its last vote for another one. It returns false if ctx ended
// first.
func (v voted) awaitTurn(ctx context.Context, wait, grace time.Duration) bool {
	turn := time.NewTimer(wait)
	defer turn.Stop()
	for {
		select {
		case <-v:
			turn.Reset(grace)
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
