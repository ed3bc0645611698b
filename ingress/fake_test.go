package ingress

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// clock is the time in tests.
var clock = time.Date(2026, 11, 20, 18, 13, 50, 0, time.UTC)

// fakeInvocations responds with the results of functions and records its calls.
type fakeInvocations struct {
	mu      sync.Mutex
	invokes []*machine.Invoke
	ids     []ids.Invocation

	send   func(context.Context, *machine.Invoke) (machine.Outcome, error)
	call   func(context.Context, *machine.Invoke) (routing.Response, error)
	stored func(*machine.Invoke) bool // whether Call has stored the input before it waits; nil: never
	attach func(context.Context, ids.Invocation) (routing.Response, error)
	output func(context.Context, ids.Invocation) (routing.Response, error)

	signals   []*machine.Signal
	signalErr error
}

func (f *fakeInvocations) Signal(_ context.Context, s *machine.Signal) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signals = append(f.signals, s)
	return f.signalErr
}

func (f *fakeInvocations) Send(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	f.note(inv, inv.ID)
	if f.send == nil {
		return machine.Outcome{}, nil
	}
	return f.send(ctx, inv)
}

// Call responds with the body of the request unless configured otherwise.
func (f *fakeInvocations) Call(ctx context.Context, inv *machine.Invoke, stored func()) (routing.Response, error) {
	if f.stored != nil && f.stored(inv) {
		inv.Input = nil
		stored()
	}
	f.note(inv, inv.ID)
	if f.call == nil {
		return routing.Response{ID: inv.ID, Target: inv.Target, Result: journal.Result{Value: bodyOf(inv)}}, nil
	}
	return f.call(ctx, inv)
}

func (f *fakeInvocations) Attach(ctx context.Context, id ids.Invocation) (routing.Response, error) {
	f.note(nil, id)
	if f.attach == nil {
		return routing.Response{}, routing.ErrNotFound
	}
	return f.attach(ctx, id)
}

func (f *fakeInvocations) Output(ctx context.Context, id ids.Invocation) (routing.Response, error) {
	f.note(nil, id)
	if f.output == nil {
		return routing.Response{}, routing.ErrNotFound
	}
	return f.output(ctx, id)
}

func (f *fakeInvocations) note(inv *machine.Invoke, id ids.Invocation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, id)
	if inv != nil {
		f.invokes = append(f.invokes, inv)
	}
}

// only returns the single invocation that was made.
func (f *fakeInvocations) only(t *testing.T) *machine.Invoke {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.invokes) != 1 {
		t.Fatalf("%d invocations, want 1", len(f.invokes))
	}
	return f.invokes[0]
}

func decodeInput(inv *machine.Invoke) *service.InputCommandMessage {
	var m service.InputCommandMessage
	if err := m.UnmarshalVT(inv.Input); err != nil {
		panic(err)
	}
	return &m
}

func bodyOf(inv *machine.Invoke) []byte { return decodeInput(inv).GetValue().GetContent() }

// headersOf are the headers a handler would see.
func headersOf(inv *machine.Invoke) map[string][]string {
	headers := map[string][]string{}
	for _, h := range decodeInput(inv).GetHeaders() {
		headers[h.Key] = append(headers[h.Key], h.Value)
	}
	return headers
}

// registry is a small set of services of every type.
type registry struct{ schemas *metadata.Schemas }

func (r registry) Schemas() *metadata.Schemas { return r.schemas }

func testRegistry() registry {
	const js = "application/json"
	var (
		no     = false
		schema = json.RawMessage(`{}`)
		jsonIn = metadata.InputRules{Required: true, ContentType: js, JSONSchema: schema}
		out    = metadata.OutputRules{ContentType: js}
		hour   = time.Hour
	)
	handler := func(name string, t target.Type) *metadata.Handler {
		return &metadata.Handler{Name: name, Type: t, Input: metadata.InputRules{Any: true}, Output: out}
	}
	strict := handler("strict", target.Service)
	strict.Input = jsonIn
	empty := handler("empty", target.Service)
	empty.Input = metadata.InputRules{}
	hidden := handler("hidden", target.Service)
	hidden.Options.Public = &no
	typed := handler("typed", target.Service)
	typed.Output = metadata.OutputRules{ContentType: "text/plain", SetContentTypeIfEmpty: true}
	untyped := handler("untyped", target.Service)
	untyped.Output = metadata.OutputRules{}
	short := handler("short", target.Service)
	short.Options.IdempotencyRetention, short.Options.JournalRetention = &hour, &hour

	current := &metadata.Deployment{ID: "dp_current", MinProtocol: 5, MaxProtocol: 6}
	old := &metadata.Deployment{ID: "dp_old", MinProtocol: 1, MaxProtocol: 4}
	services := map[string]*metadata.Service{}
	add := func(s *metadata.Service) {
		if s.Deployment == "" {
			s.Deployment = current.ID
		}
		services[s.Name] = s
	}
	add(&metadata.Service{Name: "Greeter", Handlers: []*metadata.Handler{
		handler("greet", target.Service), handler("send", target.Service), strict, empty, hidden, typed, untyped, short,
	}})
	add(&metadata.Service{Name: "Counter", Type: metadata.VirtualObject, Handlers: []*metadata.Handler{
		handler("add", target.ObjectExclusive), handler("get", target.ObjectShared), handler("send", target.ObjectExclusive),
	}})
	add(&metadata.Service{Name: "Order", Type: metadata.Workflow, Handlers: []*metadata.Handler{
		handler("run", target.WorkflowRun), handler("status", target.WorkflowShared),
	}})
	add(&metadata.Service{Name: "Internal", Options: metadata.Options{Public: &no}, Handlers: []*metadata.Handler{handler("work", target.Service)}})
	add(&metadata.Service{Name: "Old", Deployment: old.ID, Handlers: []*metadata.Handler{handler("work", target.Service)}})
	return registry{&metadata.Schemas{
		Deployments: map[ids.Deployment]*metadata.Deployment{current.ID: current, old.ID: old},
		Services:    services,
	}}
}

func testServer(t testing.TB, cfg Config, f *fakeInvocations) *Server {
	t.Helper()
	if cfg.now == nil {
		cfg.now = func() time.Time { return clock }
	}
	return New(cfg, testRegistry(), f, slog.New(slog.DiscardHandler))
}

// brokenHandler panics in the middle of its response.
func brokenHandler(c echo.Context) error {
	c.Response().Header().Set("Content-Length", "100")
	_, _ = c.Response().Write([]byte("half"))
	panic("broken")
}
