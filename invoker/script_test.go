package invoker

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

func TestMain(m *testing.M) {
	if os.Getenv("INVOKER_TEST_SERVE") != "" { // the endpoint of benchmarks
		uri, stop := startSDK()
		fmt.Println(uri)
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/tetratelabs/wazero/internal/engine/wazevo.(*engine).CloseModuleCache"))
}

// exchange is one attempt as an endpoint sees it, under the control of a test.
type exchange struct {
	t   testing.TB
	w   http.ResponseWriter
	r   *http.Request
	ctl *http.ResponseController
}

// head sends status 200 and the requested content type.
func (x *exchange) head() {
	x.w.Header().Set("Content-Type", x.r.Header.Get("Content-Type"))
	x.w.Header().Set("X-Restate-Server", "script/1")
	x.w.WriteHeader(http.StatusOK)
	x.flush()
}

func (x *exchange) flush() { _ = x.ctl.Flush() }

// send writes bytes in hex, in one piece.
func (x *exchange) send(text string) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	x.sendBytes(b)
}

func (x *exchange) sendBytes(b []byte) {
	_, _ = x.w.Write(b)
	x.flush()
}

// message is one that the server sent.
type message struct {
	kind    journal.Type
	payload string // hex
}

// read reads a message; ok is false at the end of the request.
func (x *exchange) read() (m message, ok bool) {
	var h [8]byte
	if _, err := io.ReadFull(x.r.Body, h[:]); err != nil {
		return message{}, false
	}
	payload := make([]byte, binary.BigEndian.Uint32(h[4:]))
	if _, err := io.ReadFull(x.r.Body, payload); err != nil {
		return message{}, false
	}
	return message{journal.Type(binary.BigEndian.Uint16(h[:])), hex.EncodeToString(payload)}, true
}

// replay reads a start and the given number of entries.
func (x *exchange) replay(entries int) (start string, replayed []message) {
	m, ok := x.read()
	if !ok || m.kind != protocol.Start {
		x.t.Errorf("the request began with %+v", m)
	}
	for range entries {
		e, ok := x.read()
		if !ok {
			x.t.Errorf("the replay ended after %d of %d entries", len(replayed), entries)
			break
		}
		replayed = append(replayed, e)
	}
	return m.payload, replayed
}

// expect checks the next message.
func (x *exchange) expect(kind journal.Type, payload string) {
	m, ok := x.read()
	want := message{kind, strings.ReplaceAll(payload, " ", "")}
	if !ok || m != want {
		x.t.Errorf("got %+v, want %+v", m, want)
	}
}

// expectEnd checks that the server half-closes and sends nothing more.
func (x *exchange) expectEnd() {
	if m, ok := x.read(); ok {
		x.t.Errorf("got %+v instead of the end", m)
	}
}

// bench is a session with an endpoint whose attempts run the scripts in turn; the
// last one serves all further attempts.
type bench struct {
	t       testing.TB
	iv      *Invoker
	shard   *shard
	session *Session
	server  *httptest.Server
	cfg     Config

	mu       sync.Mutex // covers the fields below
	schemas  *metadata.Schemas
	attempts int
}

func (b *bench) Schemas() *metadata.Schemas {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.schemas
}

func (b *bench) started() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attempts
}

const testDeployment = ids.Deployment("dp_10000000000000000000001")

func quickConfig() Config {
	cfg := DefaultConfig()
	cfg.Defaults.Retry.InitialInterval = time.Millisecond
	cfg.Defaults.Retry.MaxInterval = 5 * time.Millisecond
	return cfg
}

// onceConfig preserves a failure for inspection: the next attempt is an hour away.
func onceConfig() Config {
	cfg := quickConfig()
	cfg.Defaults.Retry.InitialInterval, cfg.Defaults.Retry.MaxInterval = time.Hour, time.Hour
	return cfg
}

// newBench starts a session for an endpoint at uri.
func newBench(t testing.TB, cfg Config, uri string) *bench {
	b := &bench{t: t, cfg: cfg}
	b.schemas = testSchemas(uri)
	log := slog.New(slog.DiscardHandler)
	b.iv = New(cfg, b, log)
	b.shard = newShard(t)
	b.session = b.iv.openSession(b.shard)
	b.shard.session = b.session
	t.Cleanup(func() {
		b.session.Close()
		b.shard.stop()
		b.iv.Close()
		if b.server != nil {
			b.server.CloseClientConnections()
			b.server.Close()
		}
	})
	return b
}

// scripted starts a session with an endpoint that runs scripts.
func scripted(t testing.TB, cfg Config, scripts ...func(*exchange)) *bench {
	var b *bench
	ready := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-ready
		b.mu.Lock()
		script := scripts[min(b.attempts, len(scripts)-1)]
		b.attempts++
		b.mu.Unlock()
		ctl := http.NewResponseController(w)
		_ = ctl.EnableFullDuplex()
		script(&exchange{t: t, w: w, r: r, ctl: ctl})
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.Protocols.SetHTTP1(true)
	server.Start()
	b = newBench(t, cfg, server.URL+"/")
	b.server = server
	close(ready)
	return b
}

func testSchemas(uri string) *metadata.Schemas {
	d := &metadata.Deployment{ID: testDeployment, URI: uri, Bidirectional: true, MinProtocol: 5, MaxProtocol: 7}
	handler := func(name string, of target.Type) *metadata.Handler {
		return &metadata.Handler{Name: name, Type: of}
	}
	d.Services = []*metadata.Service{
		{Name: "Counter", Type: metadata.VirtualObject, Handlers: []*metadata.Handler{
			handler("add", target.ObjectExclusive), handler("get", target.ObjectShared)}},
		{Name: "Flow", Type: metadata.Workflow, Handlers: []*metadata.Handler{
			handler("run", target.WorkflowRun), handler("peek", target.WorkflowShared)}},
		{Name: "Greeter", Handlers: []*metadata.Handler{handler("greet", target.Service)}},
	}
	s := &metadata.Schemas{Deployments: map[ids.Deployment]*metadata.Deployment{d.ID: d}, Services: map[string]*metadata.Service{}}
	for _, service := range d.Services {
		service.Deployment = d.ID
		s.Services[service.Name] = service
	}
	return s
}

// change replaces the schemas by a changed copy.
func (b *bench) change(f func(*metadata.Deployment)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	uri := b.schemas.Deployments[testDeployment].URI
	next := testSchemas(uri)
	f(next.Deployments[testDeployment])
	b.schemas = next
}

var greeter = machine.Target{Service: "Greeter", Handler: "greet", Type: target.Service}

func counter(key string) machine.Target {
	return machine.Target{Service: "Counter", Key: key, Handler: "add", Type: target.ObjectExclusive}
}

// Messages of the protocol's worked sequences.
const (
	outputHi = "0401000000000008 72060a0422686922"
	end      = "0003000000000000"
)

func echo(x *exchange) {
	x.replay(1)
	x.head()
	x.send(outputHi + end)
	x.expectEnd()
}

// lastFailure waits for the failure of an attempt. It is known as long as the task exists, so the
// next attempt must not end before the test has read it.
func lastFailure(t testing.TB, b *bench, id ids.Invocation) machine.AttemptFailure {
	t.Helper()
	var f *machine.AttemptFailure
	require.Eventually(t, func() bool {
		st, ok := b.iv.Status(id)
		f = st.LastFailure
		return ok && f != nil
	}, time.Minute, time.Millisecond)
	return *f
}

func unhex(t testing.TB, text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	require.NoError(t, err)
	return b
}
