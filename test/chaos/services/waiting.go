package main

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/history"
)

// exclusive is an object whose handler reports the start and end of its critical section.
func exclusive(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	object := restate.NewObject("Exclusive", retry)
	if hasDefect("shared-handler") {
		return object.Handler("work", restate.NewObjectSharedHandler(work))
	}
	return object.Handler("work", restate.NewObjectHandler(func(ctx restate.ObjectContext, in restate.Void) (history.Section, error) {
		return work(ctx, in)
	}))
}

func work(ctx restate.ObjectSharedContext, _ restate.Void) (history.Section, error) {
	key := restate.Key(ctx)
	enter, err := report(ctx, "exclusive-"+key, history.Enter)
	if err != nil {
		return history.Section{}, err
	}
	leave, err := report(ctx, "exclusive-"+key, history.Leave)
	return history.Section{Enter: enter, Leave: leave}, err
}

// report records an event in a step, whose result is the event's nonce.
func report(ctx restate.Context, name, event string) (string, error) {
	return restate.Run(ctx, func(ctx restate.RunContext) (string, error) {
		nonce := strconv.FormatUint(rand.Uint64(), 36)
		raw, err := json.Marshal(history.SectionEvent{Nonce: nonce, Event: event})
		if err != nil {
			return "", err
		}
		_, err = record.Effect(ctx, name, string(raw))
		return nonce, err
	})
}

// waiting is a service whose handlers wait for a timer or an awakeable.
func waiting(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewService("Waiting", retry).
		Handler("sleep", restate.NewServiceHandler(sleep)).
		Handler("awakeable", restate.NewServiceHandler(awakeable)).
		Handler("gate", restate.NewServiceHandler(gate))
}

// gate reports that it started, then waits for a gate of the recorder in a step, during
// which it cannot be suspended.
func gate(ctx restate.Context, name string) (restate.Void, error) {
	return restate.Void{}, restate.RunVoid(ctx, func(ctx restate.RunContext) error {
		if _, err := record.Effect(ctx, name, ""); err != nil {
			return err
		}
		return record.Wait(ctx, name)
	})
}

// sleep returns the start and end of a durable sleep.
func sleep(ctx restate.Context, d time.Duration) (history.Sleep, error) {
	begin, err := now(ctx)
	if err != nil {
		return history.Sleep{}, err
	}
	requested := d
	if hasDefect("short-sleep") {
		d /= 2
	}
	if err := restate.Sleep(ctx, d); err != nil {
		return history.Sleep{}, err
	}
	end, err := now(ctx)
	return history.Sleep{Requested: requested, Begin: begin, End: end}, err
}

func now(ctx restate.Context) (time.Time, error) {
	return restate.Run(ctx, func(restate.RunContext) (time.Time, error) { return time.Now(), nil })
}

// awakeable publishes an awakeable under id and returns the value it is resolved with.
func awakeable(ctx restate.Context, id string) (string, error) {
	a := restate.Awakeable[string](ctx)
	err := restate.RunVoid(ctx, func(ctx restate.RunContext) error {
		_, err := record.Effect(ctx, id, a.Id())
		return err
	})
	if err != nil {
		return "", err
	}
	return a.Result()
}

// order is a workflow that waits for a promise and then adds an entry to a ledger.
func order(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewWorkflow("Order", retry).
		Handler("run", restate.NewWorkflowHandler(runOrder)).
		Handler("confirm", restate.NewWorkflowSharedHandler(confirm))
}

func runOrder(ctx restate.WorkflowContext, ledger string) (string, error) {
	value, err := restate.Promise[string](ctx, "confirmed").Result()
	if err != nil {
		return "", err
	}
	_, err = restate.Object[int](ctx, "Ledger", ledger, "add").Request(restate.Key(ctx))
	return value, err
}

// confirm resolves the promise unless it is already resolved.
func confirm(ctx restate.WorkflowSharedContext, value string) (restate.Void, error) {
	peeked, err := restate.Promise[*string](ctx, "confirmed").Peek()
	if err != nil || peeked != nil {
		return restate.Void{}, err
	}
	return restate.Void{}, restate.Promise[string](ctx, "confirmed").Resolve(value)
}
