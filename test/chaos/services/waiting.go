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

// exclusive is an object whose handler reports when it comes and when it goes.
func exclusive(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	object := restate.NewObject("Exclusive", retry)
	if sabotaged("alone") {
		return object.Handler("work", restate.NewObjectSharedHandler(work))
	}
	return object.Handler("work", restate.NewObjectHandler(func(ctx restate.ObjectContext, in restate.Void) (history.Stay, error) {
		return work(ctx, in)
	}))
}

func work(ctx restate.ObjectSharedContext, _ restate.Void) (history.Stay, error) {
	key := restate.Key(ctx)
	enter, err := report(ctx, "exclusive-"+key, history.Enter)
	if err != nil {
		return history.Stay{}, err
	}
	leave, err := report(ctx, "exclusive-"+key, history.Leave)
	return history.Stay{Enter: enter, Leave: leave}, err
}

// report tells the recorder of a passage in a step, whose result is the nonce.
func report(ctx restate.Context, name, event string) (string, error) {
	return restate.Run(ctx, func(ctx restate.RunContext) (string, error) {
		nonce := strconv.FormatUint(rand.Uint64(), 36)
		raw, err := json.Marshal(history.Passage{Nonce: nonce, Event: event})
		if err != nil {
			return "", err
		}
		_, err = record.Effect(ctx, name, string(raw))
		return nonce, err
	})
}

// waiting is a service whose handlers wait for the time or for a word.
func waiting(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewService("Waiting", retry).
		Handler("sleep", restate.NewServiceHandler(sleep)).
		Handler("word", restate.NewServiceHandler(word))
}

// sleep tells when it began to sleep and when it woke up.
func sleep(ctx restate.Context, d time.Duration) (history.Nap, error) {
	begin, err := now(ctx)
	if err != nil {
		return history.Nap{}, err
	}
	asked := d
	if sabotaged("in-time") {
		d /= 2
	}
	if err := restate.Sleep(ctx, d); err != nil {
		return history.Nap{}, err
	}
	end, err := now(ctx)
	return history.Nap{Asked: asked, Begin: begin, End: end}, err
}

func now(ctx restate.Context) (time.Time, error) {
	return restate.Run(ctx, func(restate.RunContext) (time.Time, error) { return time.Now(), nil })
}

// word publishes an awakeable under id and returns what it is resolved with.
func word(ctx restate.Context, id string) (string, error) {
	awakeable := restate.Awakeable[string](ctx)
	err := restate.RunVoid(ctx, func(ctx restate.RunContext) error {
		_, err := record.Effect(ctx, id, awakeable.Id())
		return err
	})
	if err != nil {
		return "", err
	}
	return awakeable.Result()
}

// order is a workflow that waits for a word and then adds an entry to a ledger.
func order(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewWorkflow("Order", retry).
		Handler("run", restate.NewWorkflowHandler(runOrder)).
		Handler("confirm", restate.NewWorkflowSharedHandler(confirm))
}

func runOrder(ctx restate.WorkflowContext, ledger string) (string, error) {
	word, err := restate.Promise[string](ctx, "word").Result()
	if err != nil {
		return "", err
	}
	_, err = restate.Object[int](ctx, "Ledger", ledger, "add").Request(restate.Key(ctx))
	return word, err
}

// confirm resolves the promise unless somebody has, and returns nothing.
func confirm(ctx restate.WorkflowSharedContext, word string) (restate.Void, error) {
	peeked, err := restate.Promise[*string](ctx, "word").Peek()
	if err != nil || peeked != nil {
		return restate.Void{}, err
	}
	return restate.Void{}, restate.Promise[string](ctx, "word").Resolve(word)
}
