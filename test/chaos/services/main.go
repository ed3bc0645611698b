// Command services is the endpoint under chaos: objects that add up exactly or not,
// and handlers that report what they do. It listens on HOST and PORT and may be
// killed at any time. SABOTAGE names a promise that it breaks on purpose, so that
// tests can tell whether they would notice.
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
		Handler("add", restate.NewObjectHandler(count))
	stepper := restate.NewService("Stepper", retry).
		Handler("run", restate.NewServiceHandler(run))

	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	err := server.NewRestate().WithLogger(quiet, true).Bind(counter).Bind(stepper).
		Bind(ledger(retry)).Bind(register(retry)).Bind(exclusive(retry)).Bind(waiting(retry)).Bind(order(retry)).Bind(crowd(retry)).
		Start(context.Background(), net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	log.Fatal(err)
}

// count adds delta to the key's counter and returns the new value. Adding nothing
// is how the test reads the counter behind everything that was sent before.
func count(ctx restate.ObjectContext, delta int64) (int64, error) {
	value, err := restate.Get[int64](ctx, "value")
	if err != nil {
		return 0, err
	}
	value += delta
	restate.Set(ctx, "value", value)
	return value, nil
}

// sabotaged reports whether the promise is to be broken.
func sabotaged(promise string) bool { return os.Getenv("SABOTAGE") == promise }
