// Command services is the endpoint under chaos: counters that add up exactly or
// not, and a handler whose every step reports each of its executions. It listens
// on PORT and may be killed at any time.
package main

import (
	"context"
	"log"
	"log/slog"
	"net"
	"os"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
)

func main() {
	// Kills are frequent here, so retries are as well.
	retry := restate.WithInvocationRetryPolicy(
		restate.WithInitialRetryInterval(20*time.Millisecond),
		restate.WithMaxRetryInterval(200*time.Millisecond),
		restate.WithMaxRetryAttempts(1000),
	)
	counter := restate.NewObject("Counter", retry).
		Handler("add", restate.NewObjectHandler(add))
	stepper := restate.NewService("Stepper", retry).
		Handler("run", restate.NewServiceHandler(run))

	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	err := server.NewRestate().WithLogger(quiet, true).Bind(counter).Bind(stepper).
		Start(context.Background(), net.JoinHostPort("127.0.0.1", os.Getenv("PORT")))
	log.Fatal(err)
}

// add adds delta to the key's counter and returns the new value. Adding nothing
// is how the test reads the counter behind everything that was sent before.
func add(ctx restate.ObjectContext, delta int64) (int64, error) {
	value, err := restate.Get[int64](ctx, "value")
	if err != nil {
		return 0, err
	}
	value += delta
	restate.Set(ctx, "value", value)
	return value, nil
}
