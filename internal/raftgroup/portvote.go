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

// RequestVote requests a vote. A request that fails is repeated while this replica is a candidate in that term.
func (p *port) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	out := p.outgoing.Load()
	ctx, cancel := context.WithTimeout(out.ctx, 2*p.election)
	defer cancel()
	for {
		f, err := p.sendVoteRequest(ctx, p.target(id, addr), &node.RaftFrame{VoteRequest: wire.EncodeVote(args)})
		if err == nil && f.VoteResponse == nil {
			return errWrongResponse
		}
		if err == nil {
			*resp = wire.DecodeVoteResponse(f.VoteResponse)
			return nil
		}
		if pause(ctx, voteRetry); ctx.Err() != nil || !out.campaigns(args.Term) {
			return err
		}
	}
}

// RequestPreVote requests a pre-vote: whether a vote would be granted. Raft makes one request, and the next one only after
// the election timeout, which a candidate without contact, or whose voters still know a leader, would have to wait. So the
// request is repeated until a majority has granted its pre-votes or Raft has ended the attempt.
func (p *port) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	out := p.outgoing.Load()
	a := p.attempts.join(args, func() *attempt { return p.attempt(out, args) })
	for {
		f, err := p.sendVoteRequest(a.ctx, p.target(id, addr), &node.RaftFrame{PreVoteRequest: wire.EncodePreVote(args)})
		if err == nil && f.PreVoteResponse == nil {
			return errWrongResponse
		}
		granted := false
		if err == nil {
			*resp = wire.DecodePreVoteResponse(f.PreVoteResponse)
			granted, resp.Granted = resp.Granted, false
			if resp.Term > args.Term {
				return nil
			}
		}
		a.note(id, granted)
		pause(a.ctx, voteRetry)
		if a.ctx.Err() != nil { // perhaps while the request was repeated
			resp.Term, resp.Granted = args.Term, a.released(id)
			return nil //nolint:nilerr // the request was interrupted
		}
		if !out.campaigns(args.Term - 1) {
			return err
		}
	}
}

// attempt begins an attempt to be elected.
func (p *port) attempt(out *outgoing, args *raft.RequestPreVoteRequest) *attempt {
	voters := 0
	if r := out.raft.Load(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.Suffrage == raft.Voter {
				voters++
			}
		}
	}
	return newAttempt(out.ctx, args, voters/2+1, &p.claims, &p.group.cfg.Profile)
}

// voteRetry is the delay before a vote or a pre-vote is requested again.
const voteRetry = 200 * time.Millisecond

// campaigns reports whether this replica is a candidate in term.
func (o *outgoing) campaigns(term uint64) bool {
	r := o.raft.Load()
	return r != nil && r.State() == raft.Candidate && r.CurrentTerm() == term
}

// mayPreVote reports whether a pre-vote that Raft has granted is given to a candidate: not at the beginning of a term in
// which this replica has probably voted already, since the candidate would be refused the vote. A candidate of an earlier
// term with a better log gets it later; it could not be elected otherwise.
func (p *port) mayPreVote(req *node.VoteRequest) bool {
	r := p.outgoing.Load().raft.Load()
	if r == nil {
		return false
	}
	if term := r.CurrentTerm(); term >= req.Term && time.Since(p.claims.entered(term)) < p.election {
		return false
	}
	return p.claims.preVote(p.group.precedes(r, raft.ServerID(req.GetHeader().GetId())), p.group.cfg.Profile.FailoverStep)
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
func (p *port) sendVoteRequest(ctx context.Context, to target, f *node.RaftFrame) (*node.RaftFrame, error) {
	peer, err := p.t.peers.Peer(to.addr)
	if err != nil {
		return nil, err
	}
	p.group.cfg.Metrics.requestedVote()
	f.GroupId, f.Target = p.id, string(to.id)
	f.TimeoutMs = uint32(p.election.Milliseconds())
	return peer.CallUntil(ctx, p.election, f)
}
