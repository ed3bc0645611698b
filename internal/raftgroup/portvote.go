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

// timeoutNow makes the local replica start an election immediately.
func (p *port) timeoutNow(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(p.t.ctx, timeout)
	defer cancel()
	_, err := p.deliver(ctx, raft.RPC{Command: &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
	}})
	if err != nil {
		p.group.log.Warn("could not start an election", "err", err)
	}
}

// RequestVote requests a vote.
func (p *port) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	f, err := p.sendVoteRequest(p.target(id, addr), &node.RaftFrame{VoteRequest: wire.EncodeVote(args)})
	if err != nil {
		return err
	}
	if f.VoteResponse == nil {
		return errWrongResponse
	}
	*resp = wire.DecodeVoteResponse(f.VoteResponse)
	return nil
}

// RequestPreVote requests a pre-vote: whether a vote would be granted.
func (p *port) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	f, err := p.sendVoteRequest(p.target(id, addr), &node.RaftFrame{PreVoteRequest: wire.EncodePreVote(args)})
	if err != nil {
		return err
	}
	if f.PreVoteResponse == nil {
		return errWrongResponse
	}
	*resp = wire.DecodePreVoteResponse(f.PreVoteResponse)
	return nil
}

// handOverTimeout is how long Config.HandOver may take.
const handOverTimeout = 200 * time.Millisecond

// TimeoutNow tells a follower to start an election immediately, in place of this leader,
// whose duties end before.
func (p *port) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	leadership := p.group.leadership.current()
	if err := p.sendTimeoutNow(id, addr, min(p.election, electedTimeout), args, resp); err != nil {
		return err
	}
	return awaitElected(leadership)
}

// electedTimeout is how long a successor may take to be elected: several writes to a slow
// disk. Raft would wait for the election timeout, and accepts no proposals meanwhile.
const electedTimeout = 500 * time.Millisecond

var errNotElected = errors.New("the successor was not elected in time")

// awaitElected waits until this leadership ends, which the vote request of the successor
// does.
func awaitElected(leadership context.Context) error {
	if leadership == nil {
		return nil
	}
	timer := time.NewTimer(electedTimeout)
	defer timer.Stop()
	select {
	case <-leadership.Done():
		return nil
	case <-timer.C:
		return errNotElected
	}
}

// sendTimeoutNow requests an election of a follower, after the duties of this leader have ended.
func (p *port) sendTimeoutNow(id raft.ServerID, addr raft.ServerAddress, timeout time.Duration,
	args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	if end := p.group.cfg.HandOver; end != nil {
		ctx, cancel := context.WithTimeout(p.outgoing.Load().ctx, handOverTimeout)
		end(ctx)
		cancel()
	}
	p.group.cfg.Metrics.requestedTimeout()
	f, err := p.call(p.target(id, addr), peers.Control, timeout, &node.RaftFrame{
		TimeoutNowRequest: &node.TimeoutNowRequest{Header: wire.EncodeHeader(args.RPCHeader)},
	})
	if err != nil {
		return err
	}
	if f.TimeoutNowResponse == nil {
		return errWrongResponse
	}
	resp.RPCHeader = wire.DecodeHeader(f.TimeoutNowResponse.Header)
	return nil
}

// sendVoteRequest sends a request of an election and waits for the response.
func (p *port) sendVoteRequest(to target, f *node.RaftFrame) (*node.RaftFrame, error) {
	peer, err := p.t.peers.Peer(to.addr)
	if err != nil {
		return nil, err
	}
	p.group.cfg.Metrics.requestedVote()
	f.GroupId, f.Target = p.id, string(to.id)
	f.TimeoutMs = uint32(p.election.Milliseconds())
	return peer.CallUntil(p.outgoing.Load().ctx, p.election, f)
}
