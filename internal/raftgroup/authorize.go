package raftgroup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/nodelink"
	"platform/proto/node"
)

// greet checks the first message of a peer. The context is that of its stream.
func (t *Transport) greet(ctx context.Context, h *node.Hello) (*sender, error) {
	peer, err := t.self.Verify(ctx, h)
	if err != nil {
		return nil, err
	}
	s := &sender{t: t, Peer: peer}
	return s, s.admit(time.Now())
}

// sender is the node at the other end of a stream. Its methods are called by one goroutine.
type sender struct {
	*nodelink.Peer
	t      *Transport
	groups map[uint32]time.Time // that it may send requests to, and when that was decided
}

// admit returns an error if the node is not, or no longer, part of the cluster.
func (s *sender) admit(now time.Time) error { return s.Authorize(s.t.cfg.Authorize, now) }

// check returns an error for a request of a group of which the node has no replica, or in the
// name of another node.
func (s *sender) check(p *port, header *node.Header) error {
	if !s.Authenticated {
		return nil
	}
	if id := raft.ServerID(header.GetId()); header != nil && !s.owns(id) {
		return fmt.Errorf("node %s sends a request in the name of replica %s", s.Node, id)
	}
	now := time.Now()
	if now.Sub(s.groups[p.id]) < nodelink.AuthorizedFor {
		return nil
	}
	if !s.serves(p) {
		return fmt.Errorf("node %s has no replica of group %d", s.Node, p.id)
	}
	if s.groups == nil {
		s.groups = map[uint32]time.Time{}
	}
	s.groups[p.id] = now
	return nil
}

// owns reports whether a replica is one of the node: its server ID is the name and the
// incarnation of the node, and a number if it is not the first one there.
func (s *sender) owns(id raft.ServerID) bool {
	rest, ok := strings.CutPrefix(string(id), s.Node+"/"+s.Incarnation)
	return ok && (rest == "" || rest[0] == '#')
}

// serves reports whether the node has a replica of a group. It does not wait for a group that is
// being opened or stopped, since other groups share the stream.
func (s *sender) serves(p *port) bool {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return true // nothing is delivered before the instance runs
	}
	servers := r.GetConfiguration().Configuration().Servers
	if _, member := findServer(servers, p.group.cfg.LocalID); !member {
		return true // catching up: its log lacks the entry that added it, and maybe the one that added its leader
	}
	member := slices.ContainsFunc(servers, func(srv raft.Server) bool { return s.owns(srv.ID) })
	return member || s.t.cfg.MayServe == nil || s.t.cfg.MayServe(p.id, s.Node, s.t.leaderless(r))
}

// leaderlessAfter is how long a replica must have heard no leader to count as leaderless.
const leaderlessAfter = 5 * time.Second

// leaderless reports whether a replica has heard no leader for some time.
func (t *Transport) leaderless(r *raft.Raft) bool {
	if leader, _ := r.LeaderWithID(); leader != "" {
		return false
	}
	heard := r.LastContact()
	if heard.Before(t.started) {
		heard = t.started
	}
	return time.Since(heard) > leaderlessAfter
}
