package nodelink

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipe is one end of a stream in memory.
type pipe struct {
	ctx     context.Context
	in, out chan string
	sendErr error
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) Send(m *string) error {
	if p.sendErr != nil {
		return p.sendErr
	}
	select {
	case p.out <- *m:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *pipe) Recv() (*string, error) {
	select {
	case m, ok := <-p.in:
		if !ok {
			return nil, io.EOF
		}
		return &m, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

func idle(ctx context.Context, _ func(*string) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func open(p *pipe) func(context.Context) (Stream[string], error) {
	return func(ctx context.Context) (Stream[string], error) {
		p.ctx = ctx
		return p, nil
	}
}

func receiveAll(s Stream[string]) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

func TestOpenSendsHelloFirst(t *testing.T) {
	p := &pipe{in: make(chan string), out: make(chan string, 2)}
	hello, body := "hello", "body"
	send := func(ctx context.Context, write func(*string) error) error {
		if err := write(&body); err != nil {
			return err
		}
		close(p.in)
		return idle(ctx, write)
	}
	require.ErrorIs(t, Open(t.Context(), open(p), &hello, send, receiveAll), io.EOF)
	require.Equal(t, "hello", <-p.out)
	require.Equal(t, "body", <-p.out)
}

// TestAFailedSenderEndsAStream requires that a stream that cannot be written does not stay open
// because its receiver waits.
func TestAFailedSenderEndsAStream(t *testing.T) {
	failing := func(context.Context, func(*string) error) error { return errors.New("lost") }
	p := &pipe{in: make(chan string), out: make(chan string, 1)}
	require.ErrorIs(t, Open(t.Context(), open(p), new(string), failing, receiveAll), context.Canceled)

	p = &pipe{ctx: t.Context(), in: make(chan string), out: make(chan string, 1)}
	err := Serve(t.Context(), p, new(Tasks), new(string), failing, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	require.Error(t, err)
}

func TestServeEndsWithItsService(t *testing.T) {
	closed, closeService := context.WithCancel(t.Context())
	p := &pipe{ctx: t.Context(), in: make(chan string), out: make(chan string, 1)}
	var tasks Tasks
	ended := false
	err := Serve(closed, p, &tasks, new(string), idle, func(ctx context.Context) error {
		tasks.Go(func() {
			<-ctx.Done()
			ended = true
		})
		closeService()
		select {} // nothing arrives, and Recv cannot be interrupted
	})
	require.ErrorContains(t, err, "stream closed")
	require.True(t, ended)
	require.False(t, tasks.Go(func() { t.Error("started after the end") }))
}

func TestServeReturnsWhenTheClientIsDone(t *testing.T) {
	p := &pipe{ctx: t.Context(), in: make(chan string), out: make(chan string, 1)}
	require.NoError(t, Serve(t.Context(), p, new(Tasks), new(string), idle, func(context.Context) error { return io.EOF }))
}
