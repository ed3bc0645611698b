package fabric

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"platform/internal/ids"
	"platform/internal/nodelink"
	"platform/partition"
	"platform/partition/journal"
	"platform/proto/node"
)

// exchangeServer is the server side of a stream, of which the test is the client.
type exchangeServer struct {
	grpc.ServerStream
	ctx      context.Context
	received chan *node.PartitionBatch // closed: the client has ended the stream
	sent     chan *node.PartitionBatch // unbuffered
	reads    chan struct{}             // closed: the client reads everything
}

func (s *exchangeServer) Context() context.Context { return s.ctx }

func (s *exchangeServer) Recv() (*node.PartitionBatch, error) {
	b, ok := <-s.received
	if !ok {
		return nil, io.EOF
	}
	return b, nil
}

func (s *exchangeServer) Send(b *node.PartitionBatch) error {
	select {
	case s.sent <- b:
	case <-s.reads:
	}
	return nil
}

// A stream that ends does not wait for responses that are still queued, or wait for room in
// the queue: they can no longer be sent.
func TestStreamEndsWithQueuedResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFake(true)
		p.await = func(context.Context, ids.Invocation) (partition.Ending, error) {
			return partition.Ending{Result: journal.Result{Value: make([]byte, batchBytes-1<<10)}}, nil // one batch each
		}
		s := NewServer(ServerConfig{Self: identity("c", "n1"), Local: localReplica(p), Log: quiet})
		defer s.Close()
		stream := &exchangeServer{
			ctx: t.Context(), received: make(chan *node.PartitionBatch), sent: make(chan *node.PartitionBatch), reads: make(chan struct{}),
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Exchange(stream) }()
		client := identity("c", "client")
		stream.received <- &node.PartitionBatch{Hello: client.Hello()}
		<-stream.sent
		id := invocationID(1)
		for i := range uint64(2 * maxQueuedFrames) {
			stream.received <- &node.PartitionBatch{Frames: []*node.PartitionFrame{{
				Sequence: i, Request: &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_AWAIT, Id: id[:]},
			}}}
		}
		synctest.Wait() // the queue is full, and the writer is blocked
		close(stream.received)
		synctest.Wait()
		close(stream.reads) // until then the writer cannot stop
		synctest.Wait()
		select {
		case err := <-ended:
			require.NoError(t, err)
		default:
			t.Error("the stream has not ended")
		}
	})
}

// A node that sends requests beyond the limit, and reads no responses, makes the stream wait instead of filling memory.
func TestRejectedRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(ServerConfig{Self: identity("c", "n1"), Local: localReplica(newFake(true)), Log: quiet})
		defer s.Close()
		s.maxRequests = 0
		stream := &exchangeServer{
			ctx: t.Context(), received: make(chan *node.PartitionBatch), sent: make(chan *node.PartitionBatch), reads: make(chan struct{}),
		}
		ended := make(chan error, 1)
		go func() { ended <- s.Exchange(stream) }()
		client := identity("c", "client")
		stream.received <- &node.PartitionBatch{Hello: client.Hello()}
		<-stream.sent
		synctest.Wait()
		goroutines, requests := runtime.NumGoroutine(), uint64(0)
		for waits := false; !waits && requests < 4*maxQueuedFrames; synctest.Wait() {
			select {
			case stream.received <- &node.PartitionBatch{Frames: []*node.PartitionFrame{{Sequence: requests, Request: &node.PartitionRequest{}}}}:
				requests++
			default:
				waits = true
			}
		}
		require.Greater(t, requests, uint64(maxQueuedFrames))
		require.Less(t, requests, uint64(2*maxQueuedFrames))
		require.Less(t, runtime.NumGoroutine(), goroutines+10)
		close(stream.reads)
		stream.received <- &node.PartitionBatch{} // it continues
		close(stream.received)
		require.NoError(t, <-ended)
	})
}

// A restart of a node is no reason for an error: the others reach it before it knows its cluster.
func TestANodeThatStartsLogsNoError(t *testing.T) {
	var log bytes.Buffer
	starting, other := identity("", "n1"), identity("c", "n2")
	s := NewServer(ServerConfig{Self: starting, Local: localReplica(newFake(true)), Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer s.Close()
	stream := &exchangeServer{ctx: t.Context(), received: make(chan *node.PartitionBatch, 1)}
	stream.received <- &node.PartitionBatch{Hello: other.Hello()}
	require.ErrorIs(t, s.Exchange(stream), nodelink.ErrRefused)
	require.Empty(t, log.String())
}

// Nodes that are rejected, which can be strangers, do not determine the number of log messages.
func TestRejectedNodesDoNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a busy machine takes longer than messages are counted for
		var log bytes.Buffer
		s := NewServer(ServerConfig{Self: identity("c", "n1"), Local: localReplica(newFake(true)), Log: slog.New(slog.NewTextHandler(&log, nil))})
		defer s.Close()
		for range 100 {
			stranger := identity("other", "n2")
			stream := &exchangeServer{ctx: t.Context(), received: make(chan *node.PartitionBatch, 1)}
			stream.received <- &node.PartitionBatch{Hello: stranger.Hello()}
			require.ErrorIs(t, s.Exchange(stream), nodelink.ErrRefused)
		}
		require.Equal(t, maxRejections, strings.Count(log.String(), "node rejected"), log.String())
	})
}
