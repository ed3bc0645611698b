// Command services is the service endpoint of the fault-injection tests. It listens on
// HOST and PORT and may be killed at any time. DEFECT names a defect to activate, with
// which tests verify that their checks detect it.
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
	// Retry quickly, since kills are frequent.
	retry := restate.WithInvocationRetryPolicy(
		restate.WithInitialRetryInterval(20*time.Millisecond),
		restate.WithMaxRetryInterval(200*time.Millisecond),
		restate.WithMaxRetryAttempts(1000),
	)
	counter := restate.NewObject("Counter", retry).
		Handler("add", restate.NewObjectHandler(addToCounter))
	stepper := restate.NewService("Stepper", retry).
		Handler("run", restate.NewServiceHandler(runSteps))

	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	err := server.NewRestate().WithLogger(quiet, true).Bind(counter).Bind(stepper).
		Bind(ledger(retry)).Bind(register(retry)).Bind(exclusive(retry)).Bind(waiting(retry)).Bind(order(retry)).Bind(slots(retry)).Bind(store(retry)).
		Start(context.Background(), net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	log.Fatal(err)
}

// addToCounter adds delta to the key's counter and returns the new value. Tests add 0
// to read the counter behind all earlier additions.
func addToCounter(ctx restate.ObjectContext, delta int64) (int64, error) {
	value, err := restate.Get[int64](ctx, "value")
	if err != nil {
		return 0, err
	}
	value += delta
	restate.Set(ctx, "value", value)
	return value, nil
}

// hasDefect reports whether the named defect is active.
func hasDefect(name string) bool { return os.Getenv("DEFECT") == name }
