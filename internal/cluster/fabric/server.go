package fabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/budget"
	"platform/internal/limits"
	"platform/internal/logsample"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/proto/node"
)

const (
	// maxConcurrentRequests bounds the concurrent requests of one node, most of which wait
	// for the end of an invocation. Further requests are rejected as overload.
	maxConcurrentRequests = 100_000
	// readyTimeout bounds how long a request waits for an elected replica to become ready.
	readyTimeout = time.Second
)

// ServerConfig configures a Server.
type ServerConfig struct {
	Self Identity
	// Local returns this node's replica of a partition, nil if it has none. It is called
	// for each request and must be fast.
	Local func(partition uint32) Local
	// Authorize may reject a node that was authenticated; nil accepts all. It is called when
	// a stream begins, and about once a second while it is used.
	Authorize nodelink.Authorize
	// Seen is called with the address of each node that connects. It may be nil.
	Seen func(address string)
	// Bodies is charged for large requests; nil disables accounting.
	Bodies *budget.Budget
	// Relay sends requests on to a leader that the requesting node cannot reach; nil: they
	// are rejected.
	Relay *Client
	// AddressOf returns the current address of a leader; nil uses the address in the Raft
	// configuration.
	AddressOf func(raftgroup.Leader) string
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Server serves requests of other nodes on the replicas of this node.
type Server struct {
	node.UnimplementedNodePartitionsServer

	self Identity

	authorize nodelink.Authorize

	local  func(partition uint32) Local
	seen   func(address string)
	bodies *budget.Budget
	relays relays
	log    *slog.Logger
	ctx    context.Context //nolint:containedctx // of the streams that gRPC opens; ends with Close
	cancel context.CancelFunc

	roomTimeout time.Duration
	maxRequests int // of a stream
	rejections  *logsample.Sampler[struct{}]
}

// Bound of the log messages about rejected nodes, which anyone who reaches the port can cause.
const (
	maxRejections     = 3
	rejectionInterval = 30 * time.Second
)

// NewServer returns a server.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.AddressOf == nil {
		cfg.AddressOf = configuredAddress
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		self: cfg.Self, authorize: cfg.Authorize, local: cfg.Local, seen: cfg.Seen, bodies: cfg.Bodies, log: cfg.Log.With("component", "fabric"), ctx: ctx, cancel: cancel,
		relays:      newRelays(cfg.Relay, cfg.AddressOf),
		roomTimeout: roomTimeout, maxRequests: maxConcurrentRequests, rejections: logsample.New[struct{}](maxRejections, rejectionInterval, 1),
	}
}

// rejected logs, at a limited rate, why a node was rejected. A node that starts has no cluster for a moment, and the others
// try again.
func (s *Server) rejected(err error) {
	if errors.Is(err, nodelink.ErrNoCluster) {
		s.log.Debug("node rejected", "err", err)
		return
	}
	if skipped, due := s.rejections.Admit(struct{}{}, time.Now()); due {
		s.log.Error("node rejected", "err", err, "repeated", skipped)
	}
}

// Register registers the service with the node's gRPC server, which must have been created
// with nodelink.ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) { node.RegisterNodePartitionsServer(r, s) }

// Close ends all streams. Stopping the gRPC server afterwards waits for them.
func (s *Server) Close() { s.cancel() }

// inbound serves one Exchange stream.
type inbound struct {
	s      *Server
	stream node.NodePartitions_ExchangeServer
	peer   *nodelink.Peer
	out    *outbound
	tasks  nodelink.Tasks

	account *budget.Account // of requests sent in pieces
	room    responseRoom

	mu      sync.Mutex                    // covers running
	running map[uint64]context.CancelFunc // by sequence number
}

// Exchange serves the requests of one node. It is called by the gRPC server.
func (s *Server) Exchange(stream node.NodePartitions_ExchangeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	peer, err := s.accept(stream.Context(), first.Hello)
	if err != nil {
		return err
	}
	in := &inbound{
		s: s, stream: stream, peer: peer, out: newOutbound(), account: s.bodies.Account(), room: newResponseRoom(s.roomTimeout),
		running: make(map[uint64]context.CancelFunc),
	}
	return nodelink.Serve(s.ctx, stream, &in.tasks, &node.PartitionBatch{Hello: s.self.Hello()}, in.out.run, in.receive)
}

// accept verifies the hello of a node and reports the node as seen.
func (s *Server) accept(ctx context.Context, h *node.Hello) (*nodelink.Peer, error) {
	peer, err := s.self.Verify(ctx, h)
	if err == nil {
		err = peer.Authorize(s.authorize, time.Now())
	}
	if err != nil {
		s.rejected(err)
		return nil, nodelink.ErrRefused
	}
	if s.seen != nil && peer.Address != "" {
		s.seen(peer.Address)
	}
	return peer, nil
}

func (in *inbound) receive(ctx context.Context) error {
	incomplete := newAssembler(in.account)
	defer incomplete.close()
	for {
		batch, err := in.stream.Recv()
		if err != nil {
			return err
		}
		if err := in.peer.Authorize(in.s.authorize, time.Now()); err != nil { // it was removed
			in.s.rejected(err)
			return nodelink.ErrRefused
		}
		exclusive := len(batch.Frames) == 1
		for _, f := range batch.Frames {
			if err := in.handleFrame(ctx, f, incomplete, exclusive); err != nil {
				return status.Error(codes.InvalidArgument, err.Error())
			}
		}
	}
}

// handleFrame handles one frame. exclusive reports that no other frame shares its buffer.
func (in *inbound) handleFrame(ctx context.Context, f *node.PartitionFrame, incomplete *assembler, exclusive bool) error {
	req, size := f.Request, 0
	switch {
	case f.Ping:
		in.out.sendControl(&node.PartitionFrame{Pong: true})
	case f.Cancel:
		incomplete.drop(f.Sequence)
		in.cancelRequest(f.Sequence)
	case f.Piece != nil:
		whole, done, err := incomplete.add(f)
		if err != nil {
			in.respond(ctx, f.Sequence, &node.PartitionResponse{Code: codeOf(err), Message: err.Error()}, 0)
		}
		if !done {
			return nil
		}
		req, exclusive, size = new(node.PartitionRequest), true, len(whole)
		if err := req.UnmarshalVTUnsafe(whole); err != nil {
			return fmt.Errorf("decode request: %w", err)
		}
	}
	if req != nil {
		in.startRequest(ctx, f.Sequence, req, exclusive, int64(size))
	}
	return nil
}

// startRequest serves a request in its own goroutine, since it may wait for a long time.
// size is the size of a request sent in pieces, otherwise 0. A long-running request of that
// kind, or one for a new invocation, is rejected if it exceeds the node's budget; other
// requests are not, since they end soon and work in progress depends on them. A rejection waits
// here for room in the queue: a goroutine each would take more memory than the rejected requests.
func (in *inbound) startRequest(ctx context.Context, sequence uint64, req *node.PartitionRequest, exclusive bool, size int64) {
	if !exclusive && isLongRunning(req.Method) {
		req = cloneRequest(req)
	}
	if !in.admit(ctx, sequence, req, size) {
		in.respond(ctx, sequence, &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_OVERLOADED}, 0)
	}
}

// admit starts a request; false if the node has no room for it.
func (in *inbound) admit(ctx context.Context, sequence uint64, req *node.PartitionRequest, size int64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.running) >= in.s.maxRequests || !in.reserve(req, size) {
		return false
	}
	running, cancel := context.WithCancel(ctx)
	in.running[sequence] = cancel
	started := in.tasks.Go(func() {
		defer in.account.Release(size)
		r, room := in.serve(running, req)
		if in.finish(sequence) {
			in.respond(ctx, sequence, r, room)
		} else {
			in.room.release(room)
		}
	})
	if !started {
		cancel()
		in.account.Release(size)
	}
	return true
}

// reserve accounts for a request of the given size. It returns false if a long-running
// request or a new invocation exceeds the node's budget.
func (in *inbound) reserve(req *node.PartitionRequest, size int64) bool {
	if size > 0 && (isLongRunning(req.Method) || req.Method == node.PartitionMethod_PARTITION_METHOD_INVOKE) {
		return in.account.ReserveForNode(size)
	}
	in.account.Charge(size)
	return true
}

// finish removes a request. It returns false if the client has cancelled it.
func (in *inbound) finish(sequence uint64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	cancel, running := in.running[sequence]
	if running {
		cancel()
		delete(in.running, sequence)
	}
	return running
}

// cancelRequest cancels a running request, or stops sending its response.
func (in *inbound) cancelRequest(sequence uint64) {
	in.mu.Lock()
	cancel, running := in.running[sequence]
	delete(in.running, sequence)
	in.mu.Unlock()
	if running {
		cancel()
		return
	}
	in.out.forget(sequence)
}

// respond queues a response, which occupies room until it is sent or cancelled. It waits for
// room in the queue until ctx ends, with the stream.
func (in *inbound) respond(ctx context.Context, sequence uint64, r *node.PartitionResponse, room int64) {
	if n := r.SizeVT(); n > limits.Response {
		r = &node.PartitionResponse{
			Code:    node.PartitionCode_PARTITION_CODE_FAILED,
			Message: fmt.Sprintf("response of %d bytes is too large to be sent to another node (limit %d); send the request to the node that leads the partition", n, limits.Response),
		}
	}
	select {
	case in.out.queue <- &outgoing{
		frame: &node.PartitionFrame{Sequence: sequence, Response: r}, done: func() { in.room.release(room) },
	}:
	case <-ctx.Done():
	}
}
