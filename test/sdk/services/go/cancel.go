package main

import (
	"errors"
	"strconv"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// cancelObject covers cancellation in every kind of await.
func cancelObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("GoCancel", opts...).
		Handler("block", restate.NewObjectHandler(block)).
		Handler("ping", restate.NewObjectHandler(ping))
}

// ping returns when the key is unlocked.
func ping(restate.ObjectContext, restate.Void) (string, error) { return "pong", nil }

// block waits until it is cancelled, then compensates.
func block(ctx restate.ObjectContext, in contract.Block) (contract.Failure, error) {
	// Not in a step: that would be what the cancellation hits.
	if _, err := record.Effect(ctx, in.ID, "blocked"); err != nil {
		return contract.Failure{}, err
	}
	failure := waitFor(ctx, in)
	if failure == nil {
		return contract.Failure{}, errors.New("nothing was waited for")
	}
	if err := tell(ctx, "undo", in.ID+"-undone", strconv.Itoa(int(failure.Code()))); err != nil {
		return contract.Failure{}, err
	}
	if in.Catch {
		return caught(failure), nil
	}
	return contract.Failure{}, failure
}

// waitFor waits in the way that in names.
func waitFor(ctx restate.ObjectContext, in contract.Block) restate.TerminalError {
	child := func() restate.Client[any, contract.Failure] {
		return restate.Object[contract.Failure](ctx, "GoCancel", in.Child, "block")
	}
	input := contract.Block{ID: in.ID + "-child", In: "awakeable"}
	var err restate.TerminalError
	switch in.In {
	case "sleep":
		err = restate.Sleep(ctx, time.Hour)
	case "awakeable":
		_, err = restate.Awakeable[string](ctx).Result()
	case "call":
		_, err = child().Request(input)
	case "attach":
		_, err = restate.AttachInvocation[contract.Failure](ctx, child().Send(input).GetInvocationId()).Response()
	case "send":
		child().Send(input)
		err = restate.Sleep(ctx, time.Hour)
	case "combined":
		_, err = restate.WaitFirst(ctx,
			restate.After(ctx, time.Hour), restate.Awakeable[string](ctx), child().RequestFuture(input))
	case "run":
		err = restate.RunVoid(ctx, never(contract.Step{ID: in.ID + "-try", Message: "never works"}),
			restate.WithInitialRetryInterval(quick), restate.WithMaxRetryInterval(time.Second))
	}
	return err
}
