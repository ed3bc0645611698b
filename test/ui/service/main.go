// Command service is the endpoint of the browser tests of the web UI: handlers that succeed,
// fail, wait and write long journals.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
)

type order struct {
	Item   string   `json:"item"`
	Amount int      `json:"amount"`
	Notes  []string `json:"notes,omitempty"`
}

type receipt struct {
	ID     string            `json:"id"`
	Total  float64           `json:"total"`
	Lines  []order           `json:"lines"`
	Labels map[string]string `json:"labels,omitempty"`
}

func main() {
	address := flag.String("listen", "127.0.0.1:9080", "address to listen on")
	repaired := flag.Bool("repaired", false, "let Orders/flaky succeed")
	flag.Parse()
	log.SetFlags(0)
	s := server.NewRestate().Bind(orders(*repaired)).Bind(payments()).Bind(cart()).Bind(signup())
	log.Fatal(s.Start(context.Background(), *address))
}

func orders(repaired bool) restate.ServiceDefinition {
	return restate.NewService("Orders").
		Handler("place", restate.NewServiceHandler(place)).
		Handler("echo", restate.NewServiceHandler(func(_ restate.Context, in any) (any, error) { return in, nil })).
		Handler("flaky", restate.NewServiceHandler(func(_ restate.Context, in string) (string, error) {
			if repaired {
				return "connected to " + in, nil
			}
			return "", fmt.Errorf("connect to inventory-%s.internal:5432: connection refused", in)
		})).
		Handler("reject", restate.NewServiceHandler(func(_ restate.Context, in string) (string, error) {
			return "", restate.ToTerminalError(fmt.Errorf("the item %q is sold out", in), restate.WithErrorCode(409))
		})).
		Handler("steps", restate.NewServiceHandler(steps)).
		Handler("ticks", restate.NewServiceHandler(ticks)).
		Handler("wait", restate.NewServiceHandler(func(ctx restate.Context, in string) (string, error) {
			d, err := time.ParseDuration(in)
			if err != nil {
				return "", restate.ToTerminalError(err, restate.WithErrorCode(400))
			}
			return "done", restate.Sleep(ctx, d)
		})).
		Handler("review", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) {
			return restate.Awakeable[string](ctx).Result()
		})).
		Handler("work", restate.NewServiceHandler(func(ctx restate.Context, in string) (restate.Void, error) {
			d, err := time.ParseDuration(in)
			if err != nil {
				return restate.Void{}, restate.ToTerminalError(err, restate.WithErrorCode(400))
			}
			return restate.Run(ctx, func(ctx restate.RunContext) (restate.Void, error) { return restate.Void{}, busy(ctx, d) })
		})).
		Handler("large", restate.NewServiceHandler(func(_ restate.Context, n int) (string, error) {
			return strings.Repeat("0123456789abcdef", n/16), nil
		}))
}

// busy takes some time without suspending.
func busy(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// place has steps of every common kind.
func place(ctx restate.Context, o order) (receipt, error) {
	id, err := restate.Run(ctx, func(restate.RunContext) (string, error) { return "order-" + o.Item, nil }, restate.WithName("create id"))
	if err != nil {
		return receipt{}, err
	}
	n, err := restate.Object[int](ctx, "Cart", o.Item, "add").Request(o)
	if err != nil {
		return receipt{}, err
	}
	if _, err := restate.Service[string](ctx, "Payments", "charge").Request(float64(o.Amount)); err != nil {
		return receipt{}, err
	}
	restate.ServiceSend(ctx, "Payments", "notify").Send(id)
	if err := restate.Sleep(ctx, 120*time.Millisecond); err != nil {
		return receipt{}, err
	}
	return receipt{ID: id, Total: float64(n) * 9.5, Lines: []order{o}, Labels: map[string]string{"channel": "web"}}, nil
}

func steps(ctx restate.Context, n int) (int, error) {
	for i := range n {
		if _, err := restate.Run(ctx, func(restate.RunContext) (int, error) { return i, nil }, restate.WithName(fmt.Sprintf("step %d", i))); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// ticks appends an entry to its journal every quarter of a second.
func ticks(ctx restate.Context, n int) (int, error) {
	for i := range n {
		if _, err := restate.Run(ctx, func(ctx restate.RunContext) (int, error) { return i, busy(ctx, 250*time.Millisecond) }, restate.WithName(fmt.Sprintf("tick %d", i))); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func payments() restate.ServiceDefinition {
	return restate.NewService("Payments").
		Handler("charge", restate.NewServiceHandler(func(ctx restate.Context, amount float64) (string, error) {
			return restate.Run(ctx, func(restate.RunContext) (string, error) {
				time.Sleep(40 * time.Millisecond)
				return fmt.Sprintf("charged %.2f", amount), nil
			}, restate.WithName("card"))
		})).
		Handler("notify", restate.NewServiceHandler(func(ctx restate.Context, _ string) (restate.Void, error) {
			return restate.Void{}, restate.Sleep(ctx, 50*time.Millisecond)
		}))
}

func cart() restate.ServiceDefinition {
	return restate.NewObject("Cart").
		Handler("add", restate.NewObjectHandler(func(ctx restate.ObjectContext, o order) (int, error) {
			n, err := restate.Get[int](ctx, "count")
			if err != nil {
				return 0, err
			}
			restate.Set(ctx, "count", n+1)
			restate.Set(ctx, "last", o)
			return n + 1, nil
		})).
		Handler("hold", restate.NewObjectHandler(func(ctx restate.ObjectContext, in string) (string, error) {
			d, err := time.ParseDuration(in)
			if err != nil {
				return "", restate.ToTerminalError(err, restate.WithErrorCode(400))
			}
			return "released", restate.Sleep(ctx, d)
		})).
		Handler("set", restate.NewObjectHandler(func(ctx restate.ObjectContext, in map[string]any) (restate.Void, error) {
			for k, v := range in {
				restate.Set(ctx, k, v)
			}
			return restate.Void{}, nil
		})).
		Handler("get", restate.NewObjectSharedHandler(func(ctx restate.ObjectSharedContext, _ restate.Void) (int, error) {
			return restate.Get[int](ctx, "count")
		}))
}

func signup() restate.ServiceDefinition {
	return restate.NewWorkflow("Signup").
		Handler("run", restate.NewWorkflowHandler(func(ctx restate.WorkflowContext, email string) (bool, error) {
			if email == "" {
				return false, restate.ToTerminalError(errors.New("the address is empty"), restate.WithErrorCode(400))
			}
			restate.Set(ctx, "email", email)
			return restate.Promise[bool](ctx, "confirmed").Result()
		})).
		Handler("confirm", restate.NewWorkflowSharedHandler(func(ctx restate.WorkflowSharedContext, ok bool) (restate.Void, error) {
			return restate.Void{}, restate.Promise[bool](ctx, "confirmed").Resolve(ok)
		}))
}
