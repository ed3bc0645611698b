package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"platform/internal/nodetls"
	"platform/proto/node"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errRefused is the response to a peer that is refused. It must not name anything that a
// stranger does not know; the log has the reason.
var errRefused = status.Error(codes.PermissionDenied, "refused; the log of this node has the reason")

// authorizedFor is how long a decision about a peer is used.
const authorizedFor = time.Second

// greet checks the first message of a peer. The context is that of its stream.
func (t *Transport) greet(ctx context.Context, h *node.Hello) (*sender, error) {
	if h == nil {
		return nil, errors.New("peer did not introduce itself")
	}
	if h.ClusterId != t.cfg.ClusterID {
		return nil, fmt.Errorf("peer %s at %s belongs to cluster %q, this node to %q", h.NodeId, h.Address, h.ClusterId, t.cfg.ClusterID)
	}
	s := &sender{t: t, peer: Peer{NodeID: h.NodeId, Incarnation: h.Incarnation, Address: raft.ServerAddress(h.Address)}}
	if name := nodetls.Peer(ctx); name != "" {
		if name != h.NodeId {
			return nil, fmt.Errorf("peer calls itself %s and has the certificate of node %s", h.NodeId, name)
		}
		s.authenticated = true
	}
	return s, s.admit(time.Now())
}

// sender is the node at the other end of a stream. Its methods are called by one goroutine.
type sender struct {
	t             *Transport
	peer          Peer
	authenticated bool // it has a certificate; otherwise nothing is known, and all is accepted
	admitted      time.Time
	groups        map[uint32]time.Time // that it may send requests to, and when that was decided
}

// admit returns an error if the node is not, or no longer, part of the cluster.
func (s *sender) admit(now time.Time) error {
	if !s.authenticated || s.t.cfg.Authorize == nil || now.Sub(s.admitted) < authorizedFor {
		return nil
	}
	if err := s.t.cfg.Authorize(s.peer); err != nil {
		return err
	}
	s.admitted = now
	return nil
}

// check returns an error for a request of a group of which the node has no replica, or in the
// name of another node.
func (s *sender) check(p *port, header *node.Header) error {
	if !s.authenticated {
		return nil
	}
	if id := raft.ServerID(header.GetId()); header != nil && !s.owns(id) {
		return fmt.Errorf("node %s sends a request in the name of replica %s", s.peer.NodeID, id)
	}
	now := time.Now()
	if now.Sub(s.groups[p.id]) < authorizedFor {
		return nil
	}
	if !s.serves(p) {
		return fmt.Errorf("node %s has no replica of group %d", s.peer.NodeID, p.id)
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
	rest, ok := strings.CutPrefix(string(id), s.peer.NodeID+"/"+s.peer.Incarnation)
	return ok && (rest == "" || rest[0] == '#')
}

// serves reports whether the node has a replica of a group.
func (s *sender) serves(p *port) bool {
	inst := p.group.current()
	if inst == nil {
		return true // it responds that it is not open
	}
	servers := inst.raft.GetConfiguration().Configuration().Servers
	member := slices.ContainsFunc(servers, func(srv raft.Server) bool { return s.owns(srv.ID) })
	return member || len(servers) == 0 || s.t.cfg.MayServe == nil || s.t.cfg.MayServe(p.id, s.peer.NodeID, s.t.leaderless(inst.raft))
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

// headerOf returns the header of a request, nil if it has none.
func headerOf(f *node.RaftFrame) *node.Header {
	switch {
	case f.AppendRequest != nil:
		return f.AppendRequest.Header
	case f.VoteRequest != nil:
		return f.VoteRequest.Header
	case f.PreVoteRequest != nil:
		return f.PreVoteRequest.Header
	case f.TimeoutNowRequest != nil:
		return f.TimeoutNowRequest.Header
	}
	return nil
}
