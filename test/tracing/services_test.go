package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"github.com/stretchr/testify/require"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// services are the handlers that the scenarios call.
type services struct {
	failures atomic.Int64     // that are left
	held     chan struct{}    // what hold waits for
	tracer   oteltrace.Tracer // of the spans of work
}

func (s *services) serve(t *testing.T) (uri string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := ln.Addr().String()
	require.NoError(t, ln.Close())
	quick := restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(10*time.Millisecond), restate.WithMaxRetryInterval(10*time.Millisecond))
	endpoint := server.NewRestate().WithLogger(slog.DiscardHandler, false).
		Bind(restate.NewService("Traced", quick).
			Handler("greet", restate.NewServiceHandler(s.greet)).
			Handler("steps", restate.NewServiceHandler(steps)).
			Handler("refuse", restate.NewServiceHandler(refuse)).
			Handler("flaky", restate.NewServiceHandler(s.flaky)).
			Handler("parent", restate.NewServiceHandler(parent)).
			Handler("sender", restate.NewServiceHandler(sender)).
			Handler("fanout", restate.NewServiceHandler(fanout)).
			Handler("catch", restate.NewServiceHandler(catch)).
			Handler("nap", restate.NewServiceHandler(nap)).
			Handler("outer", restate.NewServiceHandler(outer)).
			Handler("hold", restate.NewServiceHandler(s.hold)).
			Handler("work", restate.NewServiceHandler(s.work)).
			Handler("wait", restate.NewServiceHandler(wait))).
		Bind(restate.NewObject("Keyed").
			Handler("set", restate.NewObjectHandler(set)).
			Handler("get", restate.NewObjectSharedHandler(get))).
		Bind(restate.NewWorkflow("Flow").
			Handler("run", restate.NewWorkflowHandler(run)))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() { _ = endpoint.Start(ctx, address) }()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond)
	return "http://" + address
}

func (s *services) greet(ctx restate.Context, name string) (string, error) {
	return "Hello " + name, nil
}

func steps(ctx restate.Context, n int) (int, error) {
	for range n {
		if _, err := restate.Run(ctx, func(restate.RunContext) (int, error) { return 1, nil }, restate.WithName("step")); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func refuse(ctx restate.Context, reason string) (string, error) {
	return "", restate.ToTerminalError(errors.New(reason), restate.WithErrorCode(409))
}

func (s *services) flaky(ctx restate.Context, _ restate.Void) (string, error) {
	if s.failures.Add(-1) >= 0 {
		return "", errors.New("not yet")
	}
	return "done", nil
}

func parent(ctx restate.Context, name string) (string, error) {
	return restate.Service[string](ctx, "Traced", "greet").Request(name)
}

func sender(ctx restate.Context, name string) (string, error) {
	restate.ServiceSend(ctx, "Traced", "greet").Send(name)
	return "sent", nil
}

func fanout(ctx restate.Context, n int) (int, error) {
	var calls []restate.ResponseFuture[string]
	for range n {
		calls = append(calls, restate.Service[string](ctx, "Traced", "greet").RequestFuture("x"))
	}
	for _, c := range calls {
		if _, err := c.Response(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func catch(ctx restate.Context, reason string) (string, error) {
	if _, err := restate.Service[string](ctx, "Traced", "refuse").Request(reason); err != nil {
		return "caught", nil //nolint:nilerr // the scenario expects the error
	}
	return "not refused", nil
}

func nap(ctx restate.Context, millis int) (string, error) {
	return "slept", restate.Sleep(ctx, time.Duration(millis)*time.Millisecond)
}

func outer(ctx restate.Context, name string) (string, error) {
	return restate.Service[string](ctx, "Traced", "hold").Request(name)
}

func (s *services) hold(ctx restate.Context, name string) (string, error) {
	return restate.Run(ctx, func(restate.RunContext) (string, error) {
		<-s.held
		return name, nil
	}, restate.WithName("held"))
}

// work records a span around a step with another span, and fails as often as flaky.
func (s *services) work(ctx restate.Context, _ restate.Void) (string, error) {
	inner, span := s.tracer.Start(ctx, "work")
	defer span.End()
	if s.failures.Add(-1) >= 0 {
		return "", errors.New("not yet")
	}
	return restate.Run(restate.WrapContext(ctx, inner), func(step restate.RunContext) (string, error) {
		_, span := s.tracer.Start(step, "work in a step")
		defer span.End()
		return "done", nil
	}, restate.WithName("step"))
}

func wait(ctx restate.Context, _ restate.Void) (string, error) {
	awakeable := restate.Awakeable[string](ctx)
	if _, err := restate.Run(ctx, func(restate.RunContext) (string, error) { return awakeable.Id(), nil }, restate.WithName("tell")); err != nil {
		return "", err
	}
	return awakeable.Result()
}

func set(ctx restate.ObjectContext, value string) (string, error) {
	restate.Set(ctx, "value", value)
	return value, nil
}

func get(ctx restate.ObjectSharedContext, _ restate.Void) (string, error) {
	return restate.Get[string](ctx, "value")
}

func run(ctx restate.WorkflowContext, name string) (string, error) {
	return restate.Service[string](ctx, "Traced", "greet").Request(name)
}
