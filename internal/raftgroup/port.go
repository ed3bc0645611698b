package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"platform/proto/node"

	"github.com/hashicorp/raft"
)

// errGroupStopped is the response to requests for a group that is not open here.
var errGroupStopped = errors.New("group is not open on this node")

// errDeposed is the response to an append of an earlier leadership.
var errDeposed = errors.New("no longer the leader")

// errStorageHangs is the error of a leader's appends while its own log or state hangs. It
// cannot lead, and the others would not detect this if its heartbeats continued.
var errStorageHangs = errors.New("the log or the state of this replica accepts no entries")

// errOtherReplica is the response to a request for a previous replica of the node.
var errOtherReplica = errors.New("another replica of the group")

// port is one group's end of the transport: Raft's Transport interface.
//
// It has no fast path for heartbeats and no pipeline: both have caused logs to diverge or
// replication to hang (hashicorp/raft#695, #612).
type port struct {
	t        *Transport
	group    *Group
	id       uint32
	election time.Duration
	rpcs     chan raft.RPC
	closed   chan struct{}
	ctx      context.Context // ends when closed is closed
	end      context.CancelFunc
	voted    // see Group.succeed

	silence   silence
	followers followers
	withheld  atomic.Int32             // appends that wait in withhold
	awaiting  atomic.Int32             // appends and snapshots that wait before Raft or the port repeats them
	outgoing  atomic.Pointer[outgoing] // of the running Raft instance
}

// outgoing ends the requests of one Raft instance.
type outgoing struct {
	raft   atomic.Pointer[raft.Raft] // nil while it starts
	ctx    context.Context           // ends before the instance is shut down, so that it waits for no peer
	hangUp context.CancelFunc
}

func (t *Transport) newOutgoing() *outgoing {
	o := new(outgoing)
	o.ctx, o.hangUp = context.WithCancel(t.ctx)
	return o
}

// leads reports whether the local replica leads in term. Raft stops an old leader's
// heartbeats only when its append has ended, which an unresponsive peer can delay for
// seconds; until then the others would take it for alive.
func (o *outgoing) leads(term uint64) bool {
	r := o.raft.Load()
	return r == nil || r.State() == raft.Leader && r.CurrentTerm() == term
}

// target is a replica with its address.
type target struct {
	id   raft.ServerID
	addr raft.ServerAddress
}

// target returns where the replica id is reached: at the current address of its node, if
// known, otherwise at the one in the configuration.
func (p *port) target(id raft.ServerID, configured raft.ServerAddress) target {
	return target{id, p.t.addressOf(id, configured)}
}

// meant rejects a request for another replica than this one. After a node lost its data
// directory it is reached at the old address, while the group still relies on the votes and
// entries of the old replica.
func (p *port) meant(id string) error {
	if own := p.group.cfg.LocalID; id != "" && id != string(own) {
		return fmt.Errorf("%w: %s is here, not %s", errOtherReplica, own, id)
	}
	return nil
}

var (
	_ raft.Transport   = (*port)(nil)
	_ raft.WithPreVote = (*port)(nil)
)

// Consumer returns the requests for this group.
func (p *port) Consumer() <-chan raft.RPC { return p.rpcs }

// LocalAddr returns this node's address.
func (p *port) LocalAddr() raft.ServerAddress { return p.t.cfg.Address }

// EncodePeer returns an address in wire format.
func (p *port) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// DecodePeer is the reverse of EncodePeer.
func (p *port) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler is ignored: heartbeats are sent like all requests.
func (p *port) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntriesPipeline is not supported.
func (p *port) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// deliver passes a request to Raft and waits for the response. A request whose sender has
// given up is dropped: Raft would still act on it.
func (p *port) deliver(ctx context.Context, rpc raft.RPC) (any, error) {
	answer := make(chan raft.RPCResponse, 1)
	rpc.RespChan = answer
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	select {
	case p.rpcs <- rpc:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, errGroupStopped
	}
	select {
	case r := <-answer:
		return r.Response, r.Error
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, errGroupStopped
	}
}

// probeTimeout is how long a replica that is to become the leader may take to respond. If
// all are late it doubles, up to probeTimeoutMax.
const (
	probeTimeout    = 250 * time.Millisecond
	probeTimeoutMax = time.Second
)

// responds verifies, by a request without effect, that the Raft instance of a replica runs and,
// if votes is set, that it reaches a majority of the voters. The leader accepts no proposals
// while it waits for a successor, which would take the whole election timeout if that one
// were dead; and a successor that gets no votes would leave the group without a leader for as
// long.
func (p *port) responds(ctx context.Context, id raft.ServerID, configured raft.ServerAddress, votes bool, timeout time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	_, err := p.call(p.target(id, configured), controlStream, timeout, &node.RaftFrame{
		PreVoteRequest: &node.VoteRequest{Header: headerToWire(p.header())}, Votes: votes,
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

// header returns the header of Raft's requests and responses.
func (p *port) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(p.group.cfg.LocalID), Addr: []byte(p.t.cfg.Address)}
}

// pause waits, at most until the Raft instance stops.
func (p *port) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.outgoing.Load().ctx.Done():
	}
}

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

// AppendEntries sends entries, in several messages if they are large: each message is a
// complete append. The response is that of the last one sent.
func (p *port) AppendEntries(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse,
) error {
	if !p.outgoing.Load().leads(args.Term) {
		return errDeposed
	}
	if p.group.storage.probe.hangs() {
		return errStorageHangs
	}
	if err := p.withhold(id, args); err != nil {
		return err
	}
	piece := *args
	target := p.target(id, addr)
	for rest := args.Entries; ; {
		n, size := pieceLen(rest)
		var err error
		if piece.Entries, err = p.completed(rest[:n], args.Term); err != nil {
			return err
		}
		sent := time.Now()
		if err := p.appendPiece(target, &piece, size, resp); err != nil {
			if notThere(err) {
				p.followers.absent(id, args.Term)
			}
			if args.PrevLogEntry != 0 || len(args.Entries) != 0 { // heartbeats are not delayed
				args.Entries = nil // not used after an error
				p.awaitPeer(target, args.Term, notThere(err))
			}
			return err
		}
		p.followers.appended(id, &piece, resp, sent)
		rest = rest[n:]
		if len(rest) == 0 || !resp.Success {
			return nil
		}
		last := piece.Entries[n-1]
		piece.PrevLogEntry, piece.PrevLogTerm = last.Index, last.Term
	}
}

// awaitPeer waits, after an append or a snapshot of the leader of term has failed, while the
// peer cannot be reached or, if it is absent, while its replica is not open. Raft doubles its
// delay after each failure, up to 10 s, which a peer that returns would have to wait.
func (p *port) awaitPeer(to target, term uint64, absent bool) {
	peer, err := p.t.peer(to.addr)
	if err != nil {
		return
	}
	p.awaiting.Add(1)
	defer p.awaiting.Add(-1)
	for {
		connected := peer.connection()
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

// notThere reports whether a node has responded that the replica is not open there: it was
// stopped, put into quarantine, or replaced by another one.
func notThere(err error) bool {
	return strings.Contains(err.Error(), errGroupStopped.Error()) || strings.Contains(err.Error(), errOtherReplica.Error())
}

// completed returns entries of the leader of term with their data. Once that leader is
// deposed, its entries may be truncated and replaced, which is not damage.
func (p *port) completed(logs []*raft.Log, term uint64) ([]*raft.Log, error) {
	if !slices.ContainsFunc(logs, deferred) {
		return logs, nil
	}
	whole := make([]*raft.Log, len(logs))
	for i, log := range logs {
		var err error
		if whole[i], err = p.group.storage.complete(log); err != nil {
			if !p.outgoing.Load().leads(term) {
				return nil, errDeposed
			}
			if errors.Is(err, ErrCorrupt) {
				p.group.storage.onDamage(fmt.Errorf("%w: %w", ErrQuarantined, err))
			}
			return nil, err
		}
	}
	return whole, nil
}

// pieceLen returns how many entries go into one message, and their bytes.
func pieceLen(logs []*raft.Log) (n, bytes int) {
	for n < len(logs) {
		size := sizeOf(logs[n])
		if n > 0 && bytes+size > appendPieceBytes {
			break
		}
		bytes += size
		n++
	}
	return n, bytes
}

func (p *port) appendPiece(to target, args *raft.AppendEntriesRequest, size int, resp *raft.AppendEntriesResponse) error {
	kind, timeout := controlStream, p.election
	if len(args.Entries) > 0 {
		kind, timeout = dataStream, dataTimeout+time.Duration(size)*time.Second/(1<<20)
	}
	p.group.cfg.Metrics.requestedAppend(len(args.Entries))
	f, err := p.call(to, kind, timeout, &node.RaftFrame{AppendRequest: appendToWire(args)})
	if err != nil {
		return err
	}
	r := f.AppendResponse
	if r == nil {
		return errWrongResponse
	}
	*resp = raft.AppendEntriesResponse{
		RPCHeader: headerFromWire(r.Header), Term: r.Term, LastLog: r.LastLog,
		Success: r.Success, NoRetryBackoff: r.NoRetryBackoff,
	}
	return nil
}

// RequestVote requests a vote.
func (p *port) RequestVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	f, err := p.ask(p.target(id, addr), &node.RaftFrame{VoteRequest: &node.VoteRequest{
		Header: headerToWire(args.RPCHeader), Term: args.Term, LastLogIndex: args.LastLogIndex,
		LastLogTerm: args.LastLogTerm, LeadershipTransfer: args.LeadershipTransfer,
	}})
	if err != nil {
		return err
	}
	if f.VoteResponse == nil {
		return errWrongResponse
	}
	*resp = raft.RequestVoteResponse{
		RPCHeader: headerFromWire(f.VoteResponse.Header), Term: f.VoteResponse.Term, Granted: f.VoteResponse.Granted,
	}
	return nil
}

// RequestPreVote asks whether a vote would be granted.
func (p *port) RequestPreVote(id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	f, err := p.ask(p.target(id, addr), &node.RaftFrame{PreVoteRequest: &node.VoteRequest{
		Header: headerToWire(args.RPCHeader), Term: args.Term, LastLogIndex: args.LastLogIndex, LastLogTerm: args.LastLogTerm,
	}})
	if err != nil {
		return err
	}
	if f.PreVoteResponse == nil {
		return errWrongResponse
	}
	*resp = raft.RequestPreVoteResponse{
		RPCHeader: headerFromWire(f.PreVoteResponse.Header), Term: f.PreVoteResponse.Term, Granted: f.PreVoteResponse.Granted,
	}
	return nil
}

// handOverTimeout is how long Config.HandOver may take.
const handOverTimeout = 200 * time.Millisecond

// TimeoutNow tells a follower to start an election immediately, in place of this leader,
// whose duties end before.
func (p *port) TimeoutNow(id raft.ServerID, addr raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	leadership := p.group.leadership.current()
	if err := p.tellToStand(id, addr, min(p.election, electedTimeout), args, resp); err != nil {
		return err
	}
	return awaitElected(leadership)
}

// electedTimeout is how long a successor may take to be elected: several writes to a slow
// disk. Raft would wait for the election timeout, and accepts no proposals meanwhile.
const electedTimeout = 500 * time.Millisecond

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

// tellToStand is TimeoutNow with a timeout for the response.
func (p *port) tellToStand(id raft.ServerID, addr raft.ServerAddress, timeout time.Duration,
	args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	if end := p.group.cfg.HandOver; end != nil {
		ctx, cancel := context.WithTimeout(p.outgoing.Load().ctx, handOverTimeout)
		end(ctx)
		cancel()
	}
	p.group.cfg.Metrics.requestedTimeout()
	f, err := p.call(p.target(id, addr), controlStream, timeout, &node.RaftFrame{
		TimeoutNowRequest: &node.TimeoutNowRequest{Header: headerToWire(args.RPCHeader)},
	})
	if err != nil {
		return err
	}
	if f.TimeoutNowResponse == nil {
		return errWrongResponse
	}
	resp.RPCHeader = headerFromWire(f.TimeoutNowResponse.Header)
	return nil
}

// InstallSnapshot sends the state of this replica, again after a failure: Raft would double
// its delay after each one, up to 10 s.
func (p *port) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	to := p.target(id, addr)
	export, repeatable := data.(*exportReader)
	for delay := minSnapshotRetry; ; delay = min(2*delay, maxSnapshotRetry) {
		err := p.sendSnapshot(to, args, resp, data)
		if err == nil && resp.Success && repeatable {
			export.installed(id, args.Term)
		}
		if err == nil && (resp.Success || resp.Term > args.Term) {
			return nil
		}
		if repeatable {
			_ = export.Close() // retains nothing while it waits
		}
		if err != nil {
			p.awaitPeer(to, args.Term, notThere(err))
		}
		if !repeatable || !p.mayRetry(to, args.Term, delay) {
			return err
		}
		if exportErr := export.restart(args); exportErr != nil {
			return errors.Join(err, exportErr)
		}
	}
}

// The delay between attempts to send a snapshot to a connected peer.
const (
	minSnapshotRetry = 10 * time.Millisecond
	maxSnapshotRetry = time.Second
)

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

// sendSnapshot sends a snapshot once.
func (p *port) sendSnapshot(to target, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	peer, err := p.t.peer(to.addr)
	if err != nil {
		return err
	}
	req := snapshotToWire(p.id, args)
	req.Target = string(to.id)
	sent := time.Now()
	out, err := peer.sendSnapshot(p.outgoing.Load().ctx, req, data)
	p.group.cfg.Metrics.sentSnapshot(err)
	if err != nil {
		return fmt.Errorf("send snapshot to %s: %w", to.addr, err)
	}
	*resp = raft.InstallSnapshotResponse{RPCHeader: headerFromWire(out.Header), Term: out.Term, Success: out.Success}
	p.followers.installed(to.id, args, resp, sent)
	return nil
}

// requestVote sends a vote request.
func (p *port) ask(to target, f *node.RaftFrame) (*node.RaftFrame, error) {
	peer, err := p.t.peer(to.addr)
	if err != nil {
		return nil, err
	}
	p.group.cfg.Metrics.requestedVote()
	f.GroupId, f.Target = p.id, string(to.id)
	f.TimeoutMs = uint32(p.election.Milliseconds())
	return peer.callUntil(p.outgoing.Load().ctx, p.election, f)
}

// call sends one request and waits for its response.
func (p *port) call(to target, kind streamKind, timeout time.Duration, f *node.RaftFrame) (*node.RaftFrame, error) {
	peer, err := p.t.peer(to.addr)
	if err != nil {
		return nil, err
	}
	f.GroupId, f.Target = p.id, string(to.id)
	f.TimeoutMs = uint32(timeout.Milliseconds())
	return peer.call(p.outgoing.Load().ctx, kind, timeout, f)
}
