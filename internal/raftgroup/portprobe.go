package raftgroup

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/peers"
	"platform/internal/raftgroup/wire"
	"platform/proto/node"
)

// probeTimeout is how long a replica that is to become the leader may take to respond. If
// all are late it doubles, up to probeTimeoutMax.
const (
	probeTimeout    = 250 * time.Millisecond
	probeTimeoutMax = time.Second
)

// errNoMajority is the response of a replica that should become the leader.
var errNoMajority = errors.New("replica does not reach a majority of the voters")

// responds verifies, by a request without effect, that the Raft instance of a replica runs and,
// if votes is set, that it reaches a majority of the voters. The leader accepts no proposals
// while it waits for a successor, which would take the whole election timeout if that one
// were dead; and a successor that gets no votes would leave the group without a leader for as
// long.
func (p *port) responds(ctx context.Context, id raft.ServerID, configured raft.ServerAddress, votes bool, timeout time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	_, err := p.call(p.target(id, configured), peers.Control, timeout, &node.RaftFrame{
		PreVoteRequest: &node.VoteRequest{Header: wire.EncodeHeader(p.header())}, Votes: votes,
	})
	return err
}

// reachesMajority reports whether, together with this replica, a majority of the voters
// responds.
func (p *port) reachesMajority(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var voters []raft.Server // Raft's slice must not be modified
	for _, s := range p.group.Servers() {
		if s.Suffrage == raft.Voter {
			voters = append(voters, s)
		}
	}
	responded := make(chan bool, len(voters))
	for _, s := range voters {
		go func() {
			responded <- s.ID == p.group.cfg.LocalID || p.responds(ctx, s.ID, s.Address, false, timeout) == nil
		}()
	}
	reached := 0
	for range voters {
		if <-responded {
			reached++
		}
		if reached > len(voters)/2 {
			return true
		}
	}
	return false
}
