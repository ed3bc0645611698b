package endpoint

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/internal/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, http2 bool, handler http.HandlerFunc) *Address {
	s := httptest.NewUnstartedServer(handler)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(http2)
	s.Config.Protocols.SetHTTP1(!http2)
	s.Start()
	t.Cleanup(s.Close)
	a, err := ParseAddress(s.URL, !http2)
	require.NoError(t, err)
	return a
}

func newClient(t *testing.T, change func(*Config)) *Client {
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	c := NewClient(cfg)
	t.Cleanup(c.Close)
	return c
}

// listener is a receiver that keeps what it gets.
type listener struct {
	req  *Request
	ends chan error

	mu   sync.Mutex // covers the fields below
	head Head
	got  bytes.Buffer
	data func([]byte)
}

func listen(a *Address) *listener {
	return &listener{
		req:  &Request{Address: a, Method: "POST", Path: a.Path("/x"), Header: http.Header{"user-agent": nil}},
		ends: make(chan error, 1),
	}
}

func (l *listener) Begin() *Request { return l.req }

func (l *listener) Response(h Head) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head = h
}

func (l *listener) Data(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got.Write(p)
	if l.data != nil {
		l.data(p)
	}
}

func (l *listener) End(err error) { l.ends <- err }

func (l *listener) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.Len()
}

func echoBody(w http.ResponseWriter, r *http.Request) {
	ctl := http.NewResponseController(w)
	_ = ctl.EnableFullDuplex()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		_, _ = w.Write(buf[:n])
		_ = ctl.Flush()
		if err != nil {
			return
		}
	}
}

func TestBidirectionalStream(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		c := newClient(t, nil)
		l := listen(serve(t, http2, echoBody))
		s := c.Open(l)
		for range 3 {
			before := l.length()
			s.Write([]byte("ab"), nil, []byte("c"))
			require.Eventually(t, func() bool { return l.length() == before+3 }, time.Minute, time.Millisecond)
		}
		s.CloseWrite()
		require.NoError(t, <-l.ends)
		require.Equal(t, "abcabcabc", l.got.String())
		require.Equal(t, !http2, l.head.HTTP1)
	}
}

func TestBodiesLargerThanAllWindows(t *testing.T) {
	c := newClient(t, nil)
	l := listen(serve(t, true, echoBody))
	s := c.Open(l)
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for range 24 {
		s.Write(chunk)
	}
	s.CloseWrite()
	require.NoError(t, <-l.ends)
	require.True(t, bytes.Equal(bytes.Repeat(chunk, 24), l.got.Bytes()))
}

func TestBlockedReceiversDelayOnlyTheirStreams(t *testing.T) {
	c := newClient(t, nil)
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, 8<<20))
	})
	var blocked []*listener
	var waiting atomic.Int32
	release := make(chan struct{})
	for range 50 {
		l, once := listen(a), sync.OnceFunc(func() { waiting.Add(1) })
		l.data = func([]byte) { once(); <-release }
		blocked = append(blocked, l)
		c.Open(l).CloseWrite()
	}
	if !assert.Eventually(t, func() bool { return waiting.Load() == 50 }, time.Minute, time.Millisecond, "held up by other streams") {
		close(release)
		return
	}
	l := listen(a)
	c.Open(l).CloseWrite()
	select {
	case err := <-l.ends:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Error("held up by other streams")
	}
	close(release)
	for _, l := range blocked {
		require.NoError(t, <-l.ends)
		require.Equal(t, 8<<20, l.length())
	}
}

func TestConnectionsAreOpenedOnDemand(t *testing.T) {
	var conns sync.Map
	var arrived atomic.Int32
	release := make(chan struct{})
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		conns.Store(r.RemoteAddr, true)
		arrived.Add(1)
		<-release
	})
	c := newClient(t, func(cfg *Config) { cfg.MaxStreams = 4 })
	var all []*listener
	for range 10 {
		l := listen(a)
		c.Open(l)
		all = append(all, l)
	}
	require.Eventually(t, func() bool { return arrived.Load() == 10 }, time.Minute, time.Millisecond)
	count := 0
	conns.Range(func(any, any) bool { count++; return true })
	require.GreaterOrEqual(t, count, 3)
	require.LessOrEqual(t, count, 10)
	close(release)
	for _, l := range all {
		require.NoError(t, <-l.ends)
	}
}

func TestFinishHalfClosesAndReadsTheRest(t *testing.T) {
	ended := make(chan error, 1)
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		_, err := io.Copy(io.Discard, r.Body)
		ended <- err
	})
	c := newClient(t, nil)
	l := listen(a)
	s := c.Open(l)
	require.Eventually(t, func() bool { return l.length() == 1 }, time.Minute, time.Millisecond)
	s.Finish()
	require.NoError(t, <-ended)
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.streams) == 0 && len(c.draining) == 0
	}, time.Minute, time.Millisecond)
	require.Empty(t, l.ends, "the receiver is not called after Finish")
}

func TestAnEndlessResponseIsReset(t *testing.T) {
	cut := make(chan struct{})
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(cut)
	})
	c := newClient(t, func(cfg *Config) { cfg.drainTimeout = 20 * time.Millisecond })
	l := listen(a)
	s := c.Open(l)
	require.Eventually(t, func() bool { return l.length() == 1 }, time.Minute, time.Millisecond)
	s.Finish()
	<-cut
}

func TestResetReachesThePeer(t *testing.T) {
	for _, http2 := range []bool{true, false} {
		cut := make(chan struct{})
		begun := make(chan struct{})
		a := serve(t, http2, func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				close(cut)
			}
		})
		l := listen(a)
		s := newClient(t, nil).Open(l)
		<-begun
		s.Reset()
		<-cut
		require.Empty(t, l.ends)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	a := serve(t, true, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := NewClient(DefaultConfig())
	l := listen(a)
	c.Open(l)
	c.Close()
	require.Error(t, <-l.ends)
	late := listen(a)
	c.Open(late)
	require.ErrorIs(t, <-late.ends, ErrClosed)
}

func TestHTTP1IsRecognized(t *testing.T) {
	a := serve(t, false, echoBody)
	a.HTTP11 = false
	l := listen(a)
	newClient(t, nil).Open(l)
	require.ErrorIs(t, <-l.ends, ErrHTTP1)
}

func TestParseAddress(t *testing.T) {
	a, err := ParseAddress("https://Example.com/base%2F1/?x=1", false)
	require.NoError(t, err)
	require.Equal(t, "/base%2F1/invoke/S/h?x=1", a.Path("/invoke/S/h"))
	require.Equal(t, "Example.com:443", a.host)
	for _, bad := range []string{"", "ftp://h/", "http:///x", "http://a b/", "::"} {
		_, err := ParseAddress(bad, false)
		require.ErrorIs(t, err, errAddress, bad)
	}
}

func TestFunctionsThatAreNotAllowed(t *testing.T) {
	f, err := ParseFunction("arn:aws:lambda:eu-west-1:123456789012:function:other:1")
	require.NoError(t, err)
	c := newClient(t, func(cfg *Config) {
		cfg.Egress = &egress.Policy{Functions: []string{"arn:aws:lambda:*:123456789012:function:app-*"}}
		cfg.Functions = unreachableFunctions{t}
	})
	require.ErrorIs(t, post(t, c, f), egress.ErrForbidden)
}

type unreachableFunctions struct{ t *testing.T }

func (u unreachableFunctions) Invoke(context.Context, *Function, *http.Request, Memory) (*http.Response, error) {
	u.t.Error("the function must not be invoked")
	return nil, ErrFunctions
}
