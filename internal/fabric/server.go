package fabric

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/budget"
	"platform/internal/limits"
	"platform/proto/node"
)

const (
	// maxRunning bounds the requests of one node under way here, most of which wait
	// for the end of an invocation. More are refused as overload.
	maxRunning = 100_000
	// settleTimeout is how long a request waits for a replica that was elected and is
	// not ready to serve yet.
	settleTimeout = time.Second
)

// ServerConfig says who answers, and for what.
type ServerConfig struct {
	Self Identity
	// Local returns this node's replica of a partition, nil if it has none. It is
	// asked for each request and must be quick.
	Local func(partition uint32) Local
	// Seen is told the address of each node that connects; nil: nobody cares.
	Seen func(address string)
	// Bodies is what large requests are accounted to; nil: nothing.
	Bodies *budget.Budget
	// Log is slog.Default() when nil.
	Log *slog.Logger
}

// Server answers other nodes for the replicas of this one.
type Server struct {
	node.UnimplementedNodePartitionsServer

	self   Identity
	local  func(partition uint32) Local
	seen   func(address string)
	bodies *budget.Budget
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// NewServer returns a server for other nodes.
func NewServer(cfg ServerConfig) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Server{
		self: cfg.Self, local: cfg.Local, seen: cfg.Seen, bodies: cfg.Bodies, log: cfg.Log.With("component", "fabric"), ctx: ctx, cancel: cancel,
	}
}

// Register adds the service to the node's gRPC server, which must be made with
// raftgroup.ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) { node.RegisterNodePartitionsServer(r, s) }

// Close ends all exchanges; the gRPC server, which is stopped after, waits for them.
func (s *Server) Close() { s.cancel() }

// inbound serves one Exchange stream.
type inbound struct {
	s      *Server
	stream node.NodePartitions_ExchangeServer
	out    *outbound
	wg     sync.WaitGroup

	account *budget.Account // of requests that were sent in pieces

	mu      sync.Mutex                    // covers running
	running map[uint64]context.CancelFunc // requests under way, by sequence
}

// Exchange serves the requests of one node. It is called by the gRPC server.
func (s *Server) Exchange(stream node.NodePartitions_ExchangeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := s.admit(first.Hello); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	in := &inbound{s: s, stream: stream, out: newOutbound(), account: s.bodies.Account(), running: make(map[uint64]context.CancelFunc)}
	if err := stream.Send(&node.PartitionBatch{Hello: s.self.hello()}); err != nil {
		return err
	}
	received := make(chan error, 1)
	go func() { received <- in.receive(ctx) }() // ends with the stream, when this returns at the latest
	in.wg.Go(func() {
		_ = in.out.run(ctx, stream.Send) // the receiver learns why
		cancel()
	})
	select {
	case err = <-received:
		cancel()
	case <-ctx.Done():
		err = status.Error(codes.Unavailable, "stream closed")
	}
	in.end()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// admit checks the first message of a node.
func (s *Server) admit(h *node.Hello) error {
	if err := s.self.greet(h); err != nil {
		s.log.Error("node refused", "err", err)
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	if s.seen != nil && h.Address != "" {
		s.seen(h.Address)
	}
	return nil
}

// end waits for all requests under way; none can be started after.
func (in *inbound) end() {
	in.mu.Lock()
	in.running = nil
	in.mu.Unlock()
	in.wg.Wait()
}

func (in *inbound) receive(ctx context.Context) error {
	incomplete := newParts(in.account)
	defer incomplete.close()
	for {
		batch, err := in.stream.Recv()
		if err != nil {
			return err
		}
		alone := len(batch.Frames) == 1
		for _, f := range batch.Frames {
			if err := in.take(ctx, f, incomplete, alone); err != nil {
				return status.Error(codes.InvalidArgument, err.Error())
			}
		}
	}
}

// take handles one frame. alone says that nothing else shares its memory.
func (in *inbound) take(ctx context.Context, f *node.PartitionFrame, incomplete *parts, alone bool) error {
	req, size := f.Request, 0
	switch {
	case f.Ping:
		in.out.word(&node.PartitionFrame{Pong: true})
	case f.Cancel:
		incomplete.drop(f.Sequence)
		in.stop(f.Sequence)
	case f.Piece != nil:
		whole, done, err := incomplete.add(f)
		if err != nil {
			in.refuse(ctx, f.Sequence, err)
		}
		if !done {
			return nil
		}
		req, alone, size = new(node.PartitionRequest), true, len(whole)
		if err := req.UnmarshalVTUnsafe(whole); err != nil {
			return fmt.Errorf("decode request: %w", err)
		}
	}
	if req != nil {
		in.start(ctx, f.Sequence, req, alone, int64(size))
	}
	return nil
}

// start answers a request on a goroutine of its own, since it may wait for long. size is
// that of a request that was sent in pieces. Such requests are refused beyond what the
// node may hold if they wait for an invocation; others end soon, and those that wait may
// depend on them.
func (in *inbound) start(ctx context.Context, sequence uint64, req *node.PartitionRequest, alone bool, size int64) {
	if !alone && waits(req.Method) {
		req = isolated(req)
	}
	ctx, cancel := context.WithCancel(ctx)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.running == nil {
		cancel()
		return
	}
	if len(in.running) >= maxRunning || !in.reserve(req, size) {
		cancel()
		in.wg.Go(func() {
			in.respond(in.stream.Context(), sequence, &node.PartitionResponse{Code: node.PartitionCode_PARTITION_CODE_OVERLOADED})
		})
		return
	}
	in.running[sequence] = cancel
	in.wg.Go(func() {
		defer in.account.Release(size)
		r := in.s.answer(ctx, req)
		if in.finished(sequence) {
			in.respond(in.stream.Context(), sequence, r)
		}
	})
}

func (in *inbound) reserve(req *node.PartitionRequest, size int64) bool {
	if size > 0 && waits(req.Method) {
		return in.account.ReserveForNode(size)
	}
	in.account.Charge(size)
	return true
}

// refuse answers a request that was not received as a whole.
func (in *inbound) refuse(ctx context.Context, sequence uint64, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.running != nil {
		in.wg.Go(func() {
			in.respond(ctx, sequence, &node.PartitionResponse{Code: codeOf(err), Message: err.Error()})
		})
	}
}

// finished takes a request off the list; false if its caller does not wait any more.
func (in *inbound) finished(sequence uint64) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	cancel, wanted := in.running[sequence]
	if wanted {
		cancel()
		delete(in.running, sequence)
	}
	return wanted
}

// stop ends a request whose caller does not wait any more.
func (in *inbound) stop(sequence uint64) {
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

func (in *inbound) respond(ctx context.Context, sequence uint64, r *node.PartitionResponse) {
	if n := r.SizeVT(); n > limits.Response {
		r = &node.PartitionResponse{
			Code:    node.PartitionCode_PARTITION_CODE_FAILED,
			Message: fmt.Sprintf("the response of %d bytes is too large to be sent to another node, at most %d; ask the node that leads the partition", n, limits.Response),
		}
	}
	select {
	case in.out.queue <- &outgoing{frame: &node.PartitionFrame{Sequence: sequence, Response: r}}:
	case <-ctx.Done():
	case <-in.s.ctx.Done():
	}
}
