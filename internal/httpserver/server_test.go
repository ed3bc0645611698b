package httpserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
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
