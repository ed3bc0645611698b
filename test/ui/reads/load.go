package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
	"golang.org/x/sync/errgroup"

	"platform/test/harness"
)

// startEndpoint serves the handlers until ctx ends. The channel then has the error of the endpoint.
func startEndpoint(ctx context.Context, address string) <-chan error {
	fail := func(_ restate.Context, in string) (string, error) {
		return "", fmt.Errorf("connect to inventory-%s.internal:5432: connection refused", in)
	}
	reject := func(_ restate.Context, in string) (string, error) {
		return "", restate.ToTerminalError(fmt.Errorf("the item %q is sold out", in), restate.WithErrorCode(409))
	}
	wait := func(ctx restate.Context, _ string) (string, error) { return "", restate.Sleep(ctx, 48*time.Hour) }
	hold := func(ctx restate.Context, _ string) (string, error) {
		return restate.Run(ctx, func(ctx restate.RunContext) (string, error) { // a handler that only waits would suspend and free its slot
			<-ctx.Done()
			return "", ctx.Err()
		})
	}
	add := func(ctx restate.ObjectContext, in string) (string, error) {
		restate.Set(ctx, "last", in)
		return in, nil
	}
	// The SDK logs each attempt.
	s := server.NewRestate().WithLogger(slog.DiscardHandler, false).Bind(restate.NewObject("Account").Handler("add", restate.NewObjectHandler(add)))
	for _, name := range []string{"Orders", "Rare"} {
		s.Bind(restate.NewService(name).
			Handler("echo", restate.NewServiceHandler(func(_ restate.Context, in string) (string, error) { return in, nil })).
			Handler("flaky", restate.NewServiceHandler(fail)).
			Handler("reject", restate.NewServiceHandler(reject)).
			Handler("hold", restate.NewServiceHandler(hold)).
			Handler("wait", restate.NewServiceHandler(wait)))
	}
	ended := make(chan error, 1)
	go func() {
		err := s.Start(ctx, address)
		if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
			err = nil
		}
		ended <- err
	}()
	return ended
}

const (
	loaders  = 64
	accounts = 20_000
	tenants  = 10
)

// fill registers the endpoint and makes n invocations: most are completed calls of Orders/echo, the
// rest are calls of objects, failures, invocations that wait, are retried or are held by limits.
func fill(ctx context.Context, s *harness.Server, endpoint string, n int) error {
	err := retry(ctx, func() error { return s.Register(ctx, endpoint, false) }) // while the endpoint starts
	if err != nil {
		return err
	}
	rules := `[{"pattern":"*","limits":{"concurrency":1}}]`
	if err := putRules(ctx, s, rules); err != nil {
		return err
	}
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range loaders {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := invoke(ctx, s.Client, i); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

// invoke makes the i-th invocation.
func invoke(ctx context.Context, c *harness.Client, i int) error {
	body := fmt.Appendf(nil, "%q", fmt.Sprint(i%7))
	var r harness.Response
	var err error
	want := http.StatusOK
	switch {
	case i%5000 == 1:
		want = http.StatusAccepted
		r, err = c.Send(ctx, "Orders/flaky", body)
	case i%1000 == 2:
		want = http.StatusAccepted
		r, err = c.Post(ctx, fmt.Sprintf("platform/scope/tenant-%d/send/Orders/hold", i/1000%tenants), body, "content-type", "application/json")
	case i%1000 == 3:
		want = http.StatusAccepted
		r, err = c.Send(ctx, "Orders/wait", body)
	case i%1000 == 4:
		want = http.StatusAccepted
		r, err = c.Send(ctx, "Orders/wait?delay=48h", body)
	case i%1000 == 5:
		r, err = c.Call(ctx, "Rare/echo", body)
	case i%100 == 6:
		want = http.StatusConflict
		r, err = c.Call(ctx, "Orders/reject", body)
	case i%10 == 7:
		r, err = c.Call(ctx, fmt.Sprintf("Account/a%d/add", i/10%accounts), body)
	default:
		r, err = c.Call(ctx, "Orders/echo", body)
	}
	if err == nil && r.Status != want {
		err = fmt.Errorf("invocation %d: status %d, %.300s", i, r.Status, r.Body)
	}
	return err
}

func putRules(ctx context.Context, s *harness.Server, rules string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, s.Admin()+"/limits/rules", strings.NewReader(rules))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("set rules: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("set rules: status %s", response.Status)
	}
	return nil
}
