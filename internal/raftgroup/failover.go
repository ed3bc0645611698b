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

	"github.com/hashicorp/raft"

	"platform/proto/node"
)

// A peer whose connection broke is dialed again after these delays, until the dial is
// refused. A dial that succeeds or times out is inconclusive: the kernel takes time to
// close the sockets of a killed process.
var redialDelays = []time.Duration{
	0, 2 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond,
}

const redialTimeout = 250 * time.Millisecond

// peerLost is called when a stream from addr broke. If nothing listens there anymore,
// the process has died, and the groups that it led need not wait for the election timeout.
// That only determines when to start an election; Raft decides who wins.
func (t *Transport) peerLost(addr raft.ServerAddress) {
	led := t.attached()
	led = slices.DeleteFunc(led, func(p *port) bool { return !p.ledFrom(addr) })
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
		t.log.Info("process of the leader has died", "address", string(addr), "groups", len(led))
		for _, p := range led {
			t.wg.Go(func() { p.group.succeed(addr) })
		}
	})
}

// dialRefused reports whether the host at addr responds and nothing listens.
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

// tcpRefused dials addr once and reports whether nothing listens there.
func tcpRefused(ctx context.Context, addr raft.ServerAddress) bool {
	dialer := net.Dialer{Timeout: redialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", string(addr))
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// ledFrom reports whether the group's leader is, or may be, the node at addr: one that dies
// right after its election, or during it, is not known yet. It does not wait for a group that
// is being opened or stopped, which would delay the others.
func (p *port) ledFrom(addr raft.ServerAddress) bool {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return false
	}
	leader, _ := r.LeaderWithID()
	return leader == addr || leader == "" && p.voterAt(r, addr) != ""
}

// voterAt returns the voter on the node at addr, "" if there is none.
func (p *port) voterAt(r *raft.Raft, addr raft.ServerAddress) raft.ServerID {
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.Suffrage == raft.Voter && p.target(s.ID, s.Address).addr == addr {
			return s.ID
		}
	}
	return ""
}

// succeed starts an election in place of the dead leader at addr, unless another survivor
// was faster. Each survivor waits a little longer than the previous one, and longer still
// once it has voted for that one, which will announce itself as soon as its disk allows. It
// does so once: another election would depose a newly elected leader whose first
// append has not arrived yet.
func (g *Group) succeed(addr raft.ServerAddress) {
	rank, ok := g.successionRank(g.port.voterAt(g.current().raft, addr))
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(g.port.ctx, 2*g.cfg.Profile.ElectionTimeout)
	defer cancel()
	g.port.clearVote() // of an earlier election
	step := g.cfg.Profile.FailoverStep
	if !g.port.awaitTurn(ctx, time.Duration(rank)*step, 2*step) {
		return
	}
	r := g.current().raft
	if leader, _ := r.LeaderWithID(); leader == "" || leader == addr {
		g.stand(r)
	}
}

// stand makes a follower start an election immediately; a candidate is already collecting
// votes. A replica that has failed or is about to stop must not lead again.
func (g *Group) stand(r *raft.Raft) {
	if r.State() == raft.Follower && !g.ending() {
		g.port.claims.standing()
		g.port.timeoutNow(g.cfg.Profile.ElectionTimeout)
	}
}

// outbid starts an election after this replica has refused its vote to a survivor with a
// worse log: that one cannot win without this vote, and has increased the term, so that no
// other leader is known. It does not matter whether this node has detected the death of the
// leader itself. A replica that was paused or disconnected does not start one: the request
// may be old, and the candidate may have won since.
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

// betterLog reports whether the log described by stats has something that the log of the
// candidate lacks.
func betterLog(stats map[string]string, candidate *node.VoteRequest) bool {
	index, err1 := strconv.ParseUint(stats["last_log_index"], 10, 64)
	term, err2 := strconv.ParseUint(stats["last_log_term"], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	return cmp.Or(cmp.Compare(term, candidate.LastLogTerm), cmp.Compare(index, candidate.LastLogIndex)) > 0
}

// voted signals that the local replica has given its vote to another one.
type voted chan struct{}

// note records a vote if a receiver is interested.
func (v voted) note() {
	select {
	case v <- struct{}{}:
	default:
	}
}

func (v voted) clearVote() {
	select {
	case <-v:
	default:
	}
}

// awaitTurn waits until this replica should start an election: after wait, or after grace
// since its last vote for another one. It returns false if ctx ended first.
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

// successionRank returns the local replica's rank among the surviving voters.
func (g *Group) successionRank(dead raft.ServerID) (int, bool) {
	i := slices.Index(g.succession(g.Servers(), dead), g.cfg.LocalID)
	return i, i >= 0
}

// precedes reports whether another voter comes before this replica in the order of succession. It does not wait for a group
// that is being opened or stopped.
func (g *Group) precedes(r *raft.Raft, other raft.ServerID) bool {
	order := g.succession(r.GetConfiguration().Configuration().Servers, "")
	i := slices.Index(order, other)
	return i >= 0 && i < slices.Index(order, g.cfg.LocalID)
}

// succession returns the order in which the voters start elections, without a dead one. The order is
// rotated by group, so that one survivor does not take over all groups.
func (g *Group) succession(servers []raft.Server, dead raft.ServerID) []raft.ServerID {
	var ids []raft.ServerID
	for _, s := range servers {
		if s.Suffrage == raft.Voter && s.ID != dead {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	first := int(g.cfg.ID % uint32(len(ids)))
	return slices.Concat(ids[first:], ids[:first])
}
