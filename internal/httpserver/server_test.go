package httpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func constant(d time.Duration) func() time.Duration {
	return func() time.Duration { return d }
}

// start starts a server; stop shuts it down and returns how long that took.
func start(t *testing.T, cfg Config) (addr string, stop func() time.Duration) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg.Log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, ln, cfg) }()
	return ln.Addr().String(), func() time.Duration {
		begin := time.Now()
		cancel()
		require.NoError(t, <-done)
		return time.Since(begin)
	}
}

func TestUnusedConnectionsDoNotDelayStop(t *testing.T) {
	addr, stop := start(t, Config{Handler: http.NotFoundHandler(), DrainTimeout: constant(time.Minute)})
	for range 3 {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer c.Close()
	}
	resp, err := http.Get("http://" + addr) // after the dials: the server has accepted them
	require.NoError(t, err)
	resp.Body.Close()
	require.Less(t, stop(), 30*time.Second)
	http.DefaultClient.CloseIdleConnections()
}

// The first request of a connection gets a response if it has arrived when the server stops, although the server has not read it.
func TestTheFirstRequestOfAConnectionIsServedWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		client, server := net.Pipe()
		defer client.Close()
		ctx, stop := context.WithCancel(t.Context())
		ln.conns <- slowConn{Conn: server, delay: sync.OnceFunc(func() { time.Sleep(newConnGracePeriod / 2) })}
		served := make(chan error, 1)
		go func() {
			served <- Serve(ctx, ln, Config{Handler: http.NotFoundHandler(), DrainTimeout: constant(time.Minute), Log: slog.New(slog.DiscardHandler)})
		}()
		synctest.Wait()
		begin := time.Now()
		stop()
		_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
		resp.Body.Close()
		require.NoError(t, <-served)
		require.Less(t, time.Since(begin), newConnGracePeriod, "the server stops once the request has a response")
	})
}

// The time that new connections get is a part of the time for requests in progress.
func TestUnusedConnectionsDoNotProlongTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := &pipeListener{conns: make(chan net.Conn, 2), closed: make(chan struct{})}
		client, server := net.Pipe()
		defer client.Close()
		_, unused := net.Pipe()
		ln.conns <- server
		ln.conns <- unused
		cancelled := make(chan time.Time, 1)
		handler := func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			cancelled <- time.Now()
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- Serve(ctx, ln, Config{Handler: http.HandlerFunc(handler), DrainTimeout: constant(time.Second), Log: slog.New(slog.DiscardHandler)})
		}()
		_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		require.NoError(t, err)
		synctest.Wait()
		begin := time.Now()
		stop()
		require.Equal(t, time.Second, (<-cancelled).Sub(begin))
		_, err = http.ReadResponse(bufio.NewReader(client), nil)
		require.NoError(t, err)
		require.NoError(t, <-served)
	})
}

// slowConn is a connection from which nothing is read before delay returns.
type slowConn struct {
	net.Conn
	delay func()
}

func (c slowConn) Read(p []byte) (int, error) {
	c.delay()
	return c.Conn.Read(p)
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestDrainCompletesThenCancelsRequests(t *testing.T) {
	errOver := errors.New("over")
	begun, drained := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		if r.URL.Path == "/short" {
			<-drained
			_, _ = io.WriteString(w, "finished")
			return
		}
		<-r.Context().Done()
		_, _ = io.WriteString(w, context.Cause(r.Context()).Error())
	})
	drainTimeout := time.Hour // until other nodes are known, for example
	addr, stop := start(t, Config{
		Handler: handler, DrainTimeout: func() time.Duration { return drainTimeout }, CancelCause: errOver, OnDrain: func() { close(drained) },
	})
	answers := make(chan string, 2)
	for _, path := range []string{"/short", "/long"} {
		go func() {
			resp, err := http.Get("http://" + addr + path)
			if err != nil {
				answers <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			answers <- string(body)
		}()
		<-begun
	}
	drainTimeout = 3 * time.Second
	stop()
	require.ElementsMatch(t, []string{"finished", "over"}, []string{<-answers, <-answers})
	http.DefaultClient.CloseIdleConnections()
}
