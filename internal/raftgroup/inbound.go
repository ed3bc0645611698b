package raftgroup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/nodelink"
	"platform/internal/raftgroup/wire"
	"platform/proto/node"
)

// groupBacklog bounds the requests of one stream that wait for one group. Raft sends a
// group one append and one heartbeat at a time, so more than a few come from senders that
// gave up.
const groupBacklog = 16

// waitingAppends bounds the appends with entries among them. The next one is sent when the previous one has its response or
// has timed out, so more would only use memory while the storage of the group hangs.
const waitingAppends = 1

// outgoingResponses bounds the responses that wait to be written to a stream.
const outgoingResponses = 64

// inbound serves one Exchange stream of a peer.
type inbound struct {
	t      *Transport
	stream node.RaftTransport_ExchangeServer
	from   *sender
	out    chan *node.RaftFrame
	queues map[uint32]*backlog // by group; owned by the receiving goroutine
	tasks  nodelink.Tasks
	late   atomic.Int32 // responses that wait in respond
}

// maxLateResponses bounds the responses that wait in inbound.respond.
const maxLateResponses = 1024

// arrived is a request with the time at which its sender gives up.
type arrived struct {
	frame    *node.RaftFrame
	deadline time.Time
}

// backlog is the requests that wait for a group.
type backlog struct {
	requests chan arrived
	appends  atomic.Int32 // how many of them have entries
}

func newBacklog() *backlog { return &backlog{requests: make(chan arrived, groupBacklog)} }

// add adds a request, or drops it if too many wait: its sender will time out.
func (b *backlog) add(req arrived) {
	entries := hasEntries(req.frame)
	if entries && b.appends.Load() >= waitingAppends {
		return
	}
	if entries {
		b.appends.Add(1) // only by this goroutine
	}
	select {
	case b.requests <- req:
	default:
		b.taken(req)
	}
}

// taken is called when a request no longer waits.
func (b *backlog) taken(req arrived) {
	if hasEntries(req.frame) {
		b.appends.Add(-1)
	}
}

func hasEntries(f *node.RaftFrame) bool { return len(f.GetAppendRequest().GetEntries()) > 0 }

// Exchange serves the requests of one peer. It is called by the gRPC server.
func (t *Transport) Exchange(stream node.RaftTransport_ExchangeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	from, err := t.greet(stream.Context(), first.Hello)
	if err != nil {
		t.refused("", err)
		return nodelink.ErrRefused
	}
	t.peers.Redial(raft.ServerAddress(from.Address))
	in := &inbound{t: t, stream: stream, from: from, out: make(chan *node.RaftFrame, outgoingResponses), queues: make(map[uint32]*backlog)}
	err = nodelink.Serve(t.ctx, stream, &in.tasks, &node.RaftFrame{Hello: t.self.Hello()}, nodelink.Queued(in.out), in.receive)
	if t.ctx.Err() == nil {
		t.peerLost(raft.ServerAddress(from.Address))
	}
	return err
}

// receive queues requests by group, so that a busy group does not delay others.
func (in *inbound) receive(ctx context.Context) error {
	for {
		f, err := in.stream.Recv()
		if err != nil {
			return err
		}
		if err := in.from.admit(time.Now()); err != nil {
			in.t.refused("", err)
			return nodelink.ErrRefused
		}
		port, open := in.t.port(f.GroupId)
		if !open { // and there may be no such group, so that a queue would never be used again
			in.respond(ctx, &node.RaftFrame{Sequence: f.Sequence, GroupId: f.GroupId, Error: errGroupStopped.Error()})
			continue
		}
		if err := in.from.check(port, wire.RequestHeader(f)); err != nil {
			in.t.refused("", err)
			in.respond(ctx, &node.RaftFrame{Sequence: f.Sequence, GroupId: f.GroupId, Error: nodelink.ErrRefused.Error()})
			continue
		}
		if in.fromMemory(ctx, port, f) {
			continue
		}
		queue, ok := in.queues[f.GroupId]
		if !ok {
			queue = newBacklog()
			in.queues[f.GroupId] = queue
			in.tasks.Go(func() { in.serve(ctx, queue) })
		}
		queue.add(arrived{frame: f, deadline: time.Now().Add(time.Duration(f.TimeoutMs) * time.Millisecond)})
	}
}

// fromMemory responds to requests that do not need Raft, ahead of queued ones; false if
// Raft has to respond.
func (in *inbound) fromMemory(ctx context.Context, port *port, f *node.RaftFrame) bool {
	out := &node.RaftFrame{Sequence: f.Sequence, GroupId: f.GroupId}
	switch {
	case f.Votes:
		in.tasks.Go(func() { in.handleVotes(ctx, port, f) })
		return true
	case f.SilenceRequest != nil:
		out.SilenceResponse = port.serveSilence(f)
	case f.AppendRequest != nil:
		port.noteAppend(f.AppendRequest.Term)
		if !f.Confirm {
			return false
		}
		if out.AppendResponse = port.confirm(f); out.AppendResponse == nil {
			return false
		}
	default:
		return false
	}
	in.respond(ctx, out)
	return true
}

// respond sends a response without blocking the receiver. A replica waits for one such response
// at a time, so few are pending, unless the sender does not read them.
func (in *inbound) respond(ctx context.Context, out *node.RaftFrame) {
	select {
	case in.out <- out:
		return
	default:
	}
	if in.late.Add(1) > maxLateResponses {
		in.late.Add(-1)
		return // its sender will time out
	}
	in.tasks.Go(func() {
		defer in.late.Add(-1)
		select {
		case in.out <- out:
		case <-ctx.Done():
		}
	})
}

// handleVotes responds to a request of a leader that is about to transfer its leadership to
// this replica.
func (in *inbound) handleVotes(ctx context.Context, p *port, f *node.RaftFrame) {
	timeout := time.Duration(f.TimeoutMs) * time.Millisecond
	out := in.handle(ctx, arrived{frame: f, deadline: time.Now().Add(timeout)})
	switch {
	case out == nil:
		return
	case out.Error == "" && !p.reachesMajority(ctx, timeout*3/4):
		out.Error = errNoMajority.Error()
	}
	select {
	case in.out <- out:
	case <-ctx.Done():
	}
}

// serve responds to the requests for one group, one at a time and in order.
func (in *inbound) serve(ctx context.Context, queue *backlog) {
	for {
		select {
		case req := <-queue.requests:
			queue.taken(req)
			out := in.handle(ctx, req)
			if out == nil {
				continue
			}
			select {
			case in.out <- out:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// handle passes one request to Raft; it returns nil if the sender has given up.
func (in *inbound) handle(ctx context.Context, req arrived) *node.RaftFrame {
	out := &node.RaftFrame{Sequence: req.frame.Sequence, GroupId: req.frame.GroupId}
	port, ok := in.t.port(req.frame.GroupId)
	if !ok {
		out.Error = errGroupStopped.Error()
		return out
	}
	command, err := wire.DecodeRequest(req.frame)
	if err == nil {
		err = port.checkTarget(req.frame.Target)
	}
	if err == nil {
		if err = port.check(command); err != nil {
			in.t.refused("", err)
		}
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	port.judgeByLog(command)
	port.skipCompacted(command)
	if req.frame.VoteRequest != nil {
		port.silence.voteRequested(req.frame.VoteRequest.Term)
	}
	ctx, cancel := context.WithDeadline(ctx, req.deadline)
	defer cancel()
	resp, err := port.deliver(ctx, raft.RPC{Command: command})
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = wire.EncodeResponse(out, resp)
	}
	if out.PreVoteResponse.GetGranted() {
		out.PreVoteResponse.Granted = port.mayPreVote(req.frame.PreVoteRequest)
	}
	if out.VoteResponse != nil {
		in.voted(port, req.frame.VoteRequest, out.VoteResponse)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// voted follows up on the response to a candidate.
func (in *inbound) voted(p *port, req *node.VoteRequest, resp *node.VoteResponse) {
	if resp.Granted {
		p.note()
		return
	}
	in.tasks.Go(func() { p.group.outbid(req, resp) }) // after the response, so that the candidate need not wait
}

// InstallSnapshot receives a snapshot from a leader. It is called by the gRPC
// server.
func (t *Transport) InstallSnapshot(stream node.RaftTransport_InstallSnapshotServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	stop := context.AfterFunc(t.ctx, cancel)
	defer stop()
	from, err := t.greet(ctx, first.Hello)
	if err != nil {
		t.refused("", err)
		return nodelink.ErrRefused
	}
	if first.Request == nil {
		return status.Error(codes.InvalidArgument, "snapshot without a request")
	}
	port, ok := t.port(first.Request.GroupId)
	if !ok {
		return status.Error(codes.NotFound, errGroupStopped.Error())
	}
	if err := from.check(port, first.Request.Header); err != nil {
		t.refused("", err)
		return nodelink.ErrRefused
	}
	if err := port.checkTarget(first.Request.Target); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	request := wire.DecodeSnapshot(first.Request)
	if err := port.check(request); err != nil {
		t.refused("", err)
		return status.Error(codes.InvalidArgument, err.Error())
	}
	ended := context.AfterFunc(port.ctx, cancel)
	defer ended()
	data := readChunks(ctx, stream, first.Data)
	resp, err := port.group.fsm.install.receive(ctx, request, data, port.deliver)
	if err != nil {
		if skipped, due := t.refusals.Admit(fmt.Sprint("snapshot ", first.Request.GroupId), time.Now()); due {
			port.group.log.Warn("snapshot not installed", "err", err, "repeated", skipped)
		}
		return status.Error(codes.Aborted, err.Error())
	}
	if resp.Success {
		port.group.cfg.Metrics.receivedSnapshot()
	}
	return stream.SendAndClose(&node.InstallSnapshotResponse{
		Header: wire.EncodeHeader(resp.RPCHeader), Term: resp.Term, Success: resp.Success,
	})
}

// readChunks returns the data of a snapshot call. Reads fail once ctx has ended. A blocked
// read of a stream cannot be interrupted, so another goroutine reads it, which ends with the
// call.
func readChunks(ctx context.Context, stream node.RaftTransport_InstallSnapshotServer, first []byte) io.Reader {
	r, w := io.Pipe()
	go func() {
		for {
			c, err := stream.Recv()
			if err == nil && len(c.GetData()) > 0 {
				_, err = w.Write(c.GetData())
			}
			if err != nil {
				w.CloseWithError(err)
				return
			}
		}
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return io.MultiReader(bytes.NewReader(first), r)
}
