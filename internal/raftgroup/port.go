package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/peers"
	"platform/proto/node"
)

// errGroupStopped is the response to requests for a group that is not open here.
var errGroupStopped = errors.New("group is not open on this node")

// errDeposed is the response to an append of an earlier leadership.
var errDeposed = errors.New("no longer the leader")

// errStorageHangs is the error of a leader's appends while its own log or state hangs. It
// cannot lead, and the others would not detect this if its heartbeats continued.
var errStorageHangs = errors.New("the log or the state of this replica accepts no entries")

// errWrongResponse is the error of a request to which the response has another kind.
var errWrongResponse = errors.New("peer sent another kind of response")

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
	ctx      context.Context //nolint:containedctx // Raft calls without one; ends when closed is closed
	end      context.CancelFunc
	voted    // see Group.succeed

	silence   silence
	claims    electionClaims
	attempts  attempts
	followers followers
	withheld  atomic.Int32             // appends that wait in withhold
	awaiting  atomic.Int32             // appends and snapshots that wait before Raft or the port repeats them
	outgoing  atomic.Pointer[outgoing] // of the running Raft instance
}

// outgoing ends the requests of one Raft instance.
type outgoing struct {
	raft   atomic.Pointer[raft.Raft] // nil while it starts
	ctx    context.Context           //nolint:containedctx // ends before the instance is shut down, so that it waits for no peer
	hangUp context.CancelFunc
}

func (t *Transport) newOutgoing() *outgoing {
	o := new(outgoing)
	o.ctx, o.hangUp = context.WithCancel(t.ctx)
	return o
}

// leads reports whether the local replica leads in term. Raft stops an old leader's
// heartbeats only when its append has ended, which an unresponsive peer can delay for
// seconds; until then the others would consider it alive.
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

// checkTarget rejects a request for another replica than this one. After a node lost its data
// directory it is reached at the old address, while the group still relies on the votes and
// entries of the old replica.
func (p *port) checkTarget(id string) error {
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
	responses := make(chan raft.RPCResponse, 1)
	rpc.RespChan = responses
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
	case r := <-responses:
		return r.Response, r.Error
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, errGroupStopped
	}
}

// header returns the header of Raft's requests and responses.
func (p *port) header() raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(p.group.cfg.LocalID), Addr: []byte(p.t.cfg.Address)}
}

// pause waits, at most until the Raft instance stops.
func (p *port) pause(d time.Duration) { pause(p.outgoing.Load().ctx, d) }

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// call sends one request and waits for its response.
func (p *port) call(to target, kind peers.Kind, timeout time.Duration, f *node.RaftFrame) (*node.RaftFrame, error) {
	peer, err := p.t.peers.Peer(to.addr)
	if err != nil {
		return nil, err
	}
	f.GroupId, f.Target = p.id, string(to.id)
	f.TimeoutMs = uint32(timeout.Milliseconds())
	return peer.Call(p.outgoing.Load().ctx, kind, timeout, f)
}
