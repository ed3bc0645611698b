package raftgroup

import (
	"cmp"
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

// RequestVote requests a vote. A request that fails is repeated while this replica is a candidate in that term.
func (p *port) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	out := p.outgoing.Load()
	for begin := time.Now(); ; p.pause(voteRetry) {
		f, err := p.sendVoteRequest(p.target(id, addr), &node.RaftFrame{VoteRequest: wire.EncodeVote(args)})
		switch {
		case err != nil && p.campaigns(out, begin, args.Term):
		case err != nil:
			return err
		case f.VoteResponse == nil:
			return errWrongResponse
		default:
			*resp = wire.DecodeVoteResponse(f.VoteResponse)
			return nil
		}
	}
}

// RequestPreVote requests a pre-vote: whether a vote would be granted. Raft makes one request, and the next one only after
// the election timeout, which a candidate without contact, or whose voters still know a leader, would have to wait. So the
// request is repeated until the pre-vote is granted or Raft has ended the attempt.
func (p *port) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	out := p.outgoing.Load()
	p.preVoting.Store(args) // the same pointer for all voters
	var granted time.Time
	for begin := time.Now(); ; p.pause(voteRetry) {
		f, err := p.sendVoteRequest(p.target(id, addr), &node.RaftFrame{PreVoteRequest: wire.EncodePreVote(args)})
		if err == nil && f.PreVoteResponse == nil {
			return errWrongResponse
		}
		if err == nil {
			*resp = wire.DecodePreVoteResponse(f.PreVoteResponse)
			if resp.Granted {
				granted = cmp.Or(granted, time.Now())
			}
			if resp.Term > args.Term || resp.Granted && p.mayStand(args.Term, granted) {
				return nil
			}
			resp.Granted = false
		}
		if p.preVoting.Load() != args || !p.campaigns(out, begin, args.Term-1) {
			return err
		}
	}
}

// voteRetry is the delay before a vote or a pre-vote is requested again.
const voteRetry = 200 * time.Millisecond

// campaigns reports whether this replica has been a candidate in term since begin.
func (p *port) campaigns(out *outgoing, begin time.Time, term uint64) bool {
	r := out.raft.Load()
	return r != nil && out.ctx.Err() == nil && r.State() == raft.Candidate && r.CurrentTerm() == term && time.Since(begin) < 2*p.election
}

// mayStand reports whether a candidate that was first granted a pre-vote at granted may start its election: it yields to
// another one for a while.
func (p *port) mayStand(term uint64, granted time.Time) bool {
	step := p.group.cfg.Profile.FailoverStep
	return p.silence.claimTerm(term, step) || time.Since(granted) > 2*step
}

// mayPreVote reports whether a pre-vote that Raft has granted is given to a candidate.
func (p *port) mayPreVote(candidate raft.ServerID) bool {
	return p.silence.preVote(p.group.precedes(candidate), p.group.cfg.Profile.FailoverStep)
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
