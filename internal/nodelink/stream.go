package nodelink

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Stream is one end of a stream between two nodes.
type Stream[M any] interface {
	Context() context.Context
	Send(message *M) error
	Recv() (*M, error)
}

// Sender sends the messages of a stream with write until ctx ends or a write fails.
type Sender[M any] func(ctx context.Context, write func(message *M) error) error

// Queued returns a Sender of the messages in a queue.
func Queued[M any](queue <-chan *M) Sender[M] {
	return func(ctx context.Context, write func(*M) error) error {
		for {
			select {
			case m := <-queue:
				if err := write(m); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// Open opens a stream to another node and uses it until it breaks or ctx ends: it sends hello,
// then send and receive run concurrently, and each ends the other. It returns the error of
// receive, which has the status of a broken stream.
func Open[M any](ctx context.Context, open func(context.Context) (Stream[M], error), hello *M, send Sender[M], receive func(Stream[M]) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := open(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(hello); err != nil {
		_, err = stream.Recv() // returns the status
		return err
	}
	var sender sync.WaitGroup
	defer sender.Wait()
	defer cancel()
	sender.Go(func() {
		defer cancel()
		_ = send(ctx, stream.Send)
	})
	return receive(stream)
}

// Serve serves the stream of another node until it breaks or closed ends: it sends hello, then
// send and receive run concurrently, and each ends the other. It returns when the tasks have
// ended, of which send is one. receive ends later if nothing arrives.
func Serve[M any](closed context.Context, stream Stream[M], tasks *Tasks, hello *M, send Sender[M], receive func(context.Context) error) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(closed, cancel)() // the gRPC server may outlive its services
	if err := stream.Send(hello); err != nil {
		return err
	}
	tasks.Go(func() {
		defer cancel()
		_ = send(ctx, stream.Send) // receive returns the status
	})
	received := make(chan error, 1)
	go func() { received <- receive(ctx) }()
	var err error
	select {
	case err = <-received:
		cancel()
	case <-ctx.Done():
		err = status.Error(codes.Unavailable, "stream closed")
	}
	tasks.End()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Tasks are the goroutines of a stream.
type Tasks struct {
	mu    sync.Mutex // covers ended, and starting goroutines in wg
	ended bool
	wg    sync.WaitGroup
}

// Go starts a goroutine. It returns false if it did not, because End was called.
func (t *Tasks) Go(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.wg.Go(f)
	}
	return !t.ended
}

// End prevents new goroutines and waits for all that were started.
func (t *Tasks) End() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.wg.Wait()
}
