package raftgroup

import (
	"strings"
	"time"
)

// awaitPeer waits, after an append or a snapshot of the leader of term has failed, while the
// peer cannot be reached or, if it is absent, while its replica is not open. Raft doubles its
// delay after each failure, up to 10 s, which a peer that returns would have to wait.
func (p *port) awaitPeer(to target, term uint64, absent bool) {
	peer, err := p.t.peers.Peer(to.addr)
	if err != nil {
		return
	}
	p.awaiting.Add(1)
	defer p.awaiting.Add(-1)
	for {
		connected := peer.Reconnected()
		out := p.outgoing.Load()
		if !out.leads(term) || !p.member(to) {
			return
		}
		check := awaitPeerCheck
		if connected == nil {
			// A heartbeat finds out that the replica was opened.
			if !absent || !p.followers.of(to.id, term).contact.IsZero() {
				return
			}
			check = awaitReplicaCheck
		}
		select {
		case <-connected:
		case <-time.After(check):
		case <-out.ctx.Done():
			return
		}
	}
}

// awaitPeerCheck is how often awaitPeer checks whether it is still needed, awaitReplicaCheck
// how often it does that for a replica that is not open.
const (
	awaitPeerCheck    = time.Second
	awaitReplicaCheck = 50 * time.Millisecond
)

// member reports whether a replica is in the newest configuration, at the same address.
func (p *port) member(to target) bool {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return false
	}
	s, found := findServer(r.GetConfiguration().Configuration().Servers, to.id)
	return found && p.t.addressOf(s.ID, s.Address) == to.addr
}

// replicaNotOpen reports whether a node has responded that the replica is not open there: it was
// stopped, put into quarantine, or replaced by another one.
func replicaNotOpen(err error) bool {
	return strings.Contains(err.Error(), errGroupStopped.Error()) || strings.Contains(err.Error(), errOtherReplica.Error())
}

// mayRetry waits, and reports whether the leader of term still replicates to a peer.
func (p *port) mayRetry(to target, term uint64, delay time.Duration) bool {
	p.awaiting.Add(1)
	defer p.awaiting.Add(-1)
	out := p.outgoing.Load()
	select {
	case <-time.After(delay):
	case <-out.ctx.Done():
		return false
	}
	return out.leads(term) && p.member(to)
}
