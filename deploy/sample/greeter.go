package sample

import (
	"errors"
	"log"
	"time"

	restate "github.com/restatedev/sdk-go"
)

var errNoName = errors.New("the name is empty; send a name as a JSON string")

// greeter is a service: its handlers keep no state between calls, and any number
// of calls run at the same time.
func greeter() restate.ServiceDefinition {
	return restate.NewService("Greeter").
		Handler("greet", restate.NewServiceHandler(greet))
}

// greet has three durable steps. If this process or the server is killed while
// the handler sleeps, it is called again afterwards, gets the greeting it composed
// before, and sleeps only for what is left.
func greet(ctx restate.Context, name string) (string, error) {
	if name == "" {
		// A terminal error is the caller's answer. Any other error is retried.
		return "", restate.ToTerminalError(errNoName, restate.WithErrorCode(400))
	}

	// What Run returns is kept in the journal and never computed twice. Everything that has a side
	// effect or differs from one time to the next belongs in it.
	greeting, err := restate.Run(ctx, func(restate.RunContext) (string, error) {
		log.Printf("composing a greeting for %s", name)
		return "Good " + timeOfDay(time.Now()) + ", " + name + "!", nil
	}, restate.WithName("compose"))
	if err != nil {
		return "", err
	}

	// A durable sleep costs no memory and no connection while it lasts.
	if err := restate.Sleep(ctx, 200*time.Millisecond); err != nil {
		return "", err
	}

	// A call of another handler is durable as well: it is made exactly once.
	count, err := restate.Object[int](ctx, "Counter", name, "add").Request(1)
	if err != nil {
		return "", err
	}
	if count == 1 {
		return greeting + " Nice to meet you.", nil
	}
	return greeting + " Nice to see you again.", nil
}

func timeOfDay(t time.Time) string {
	switch hour := t.Hour(); {
	case hour < 12:
		return "morning"
	case hour < 18:
		return "afternoon"
	default:
		return "evening"
	}
}
