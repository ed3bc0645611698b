package kafka

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"
)

// recordID names a record.
type recordID struct {
	topic     string
	partition int32
	offset    int64
}

// ledger records which invocations were made of which record.
type ledger struct {
	mu          sync.Mutex // covers the fields below
	invocations map[recordID]string
	inputs      map[recordID][32]byte  // hashes
	arrived     map[recordID]time.Time // of the first execution; nil: not measured
	doubled     []string
	disordered  []string
	executions  int
	distinct    map[recordID]map[string]bool // invocations of each record; nil: not collected
}

func (l *ledger) add(id recordID, invocation string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executions++
	if known, ok := l.invocations[id]; ok && known != invocation {
		l.doubled = append(l.doubled, fmt.Sprintf("%v: %s and %s", id, known, invocation))
	}
	l.invocations[id] = invocation
	if l.distinct != nil {
		if l.distinct[id] == nil {
			l.distinct[id] = map[string]bool{}
		}
		l.distinct[id][invocation] = true
	}
	if _, again := l.arrived[id]; l.arrived != nil && !again {
		l.arrived[id] = time.Now()
	}
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.invocations)
}

// startService serves an object, which counts its records and checks their order, and a
// service that only counts them; Ignored does not.
func startService(t testing.TB) (*ledger, string) {
	t.Helper()
	l := &ledger{invocations: map[recordID]string{}, inputs: map[recordID][32]byte{}}
	handler, err := server.NewRestate().WithLogger(slog.DiscardHandler, false).
		Bind(restate.NewObject("Orders").Handler("add", restate.NewObjectHandler(l.order))).
		Bind(restate.NewService("Plain").Handler("run", restate.NewServiceHandler(l.plain))).
		Bind(restate.NewService("Ignored").Handler("run", restate.NewServiceHandler(func(restate.Context, map[string]int) (restate.Void, error) { return restate.Void{}, nil }))).
		Bind(restate.NewService("Bytes").Handler("run", restate.NewServiceHandler(l.bytes, restate.WithBinary))).
		Handler()
	require.NoError(t, err)
	return l, serve(t, handler)
}

// serve serves handlers and returns the URL.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Handler: handler, Protocols: protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 1000}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return "http://" + listener.Addr().String()
}

func recordOf(headers interface{ Get(string) string }) recordID {
	p, _ := strconv.ParseInt(headers.Get("kafka.partition"), 10, 32)
	o, _ := strconv.ParseInt(headers.Get("kafka.offset"), 10, 64)
	return recordID{headers.Get("kafka.topic"), int32(p), o}
}

func (l *ledger) plain(ctx restate.Context, _ map[string]int) (restate.Void, error) {
	l.add(recordOf(ctx.Request().Headers), ctx.Request().ID)
	return restate.Void{}, nil
}

// bytes records the input of a record.
func (l *ledger) bytes(ctx restate.Context, input []byte) ([]byte, error) {
	id := recordOf(ctx.Request().Headers)
	l.mu.Lock()
	l.inputs[id] = sha256.Sum256(input)
	l.mu.Unlock()
	l.add(id, ctx.Request().ID)
	return nil, nil
}

// order checks the order of the records of a key with durable state, and counts them.
func (l *ledger) order(ctx restate.ObjectContext, _ map[string]int) (restate.Void, error) {
	id := recordOf(ctx.Request().Headers)
	l.add(id, ctx.Request().ID)
	last, err := restate.Get[int64](ctx, "next")
	if err != nil {
		return restate.Void{}, err
	}
	if id.offset+1 <= last {
		l.mu.Lock()
		l.disordered = append(l.disordered, fmt.Sprintf("%v of %s after %d", id, restate.Key(ctx), last-1))
		l.mu.Unlock()
	}
	restate.Set(ctx, "next", id.offset+1)
	count, err := restate.Get[int64](ctx, "count")
	if err != nil {
		return restate.Void{}, err
	}
	restate.Set(ctx, "count", count+1)
	return restate.Void{}, nil
}
