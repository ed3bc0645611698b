package main

import (
	"errors"

	restate "github.com/restatedev/sdk-go"

	"platform/test/sdk/contract"
)

// signalsService covers named signals between invocations.
func signalsService() restate.ServiceDefinition {
	return restate.NewService("GoSignals").
		Handler("await", restate.NewServiceHandler(awaitSignals)).
		Handler("send", restate.NewServiceHandler(sendSignal))
}

// awaitSignals tells its own id, unless in.ID is empty, and waits for signals, one after the
// other.
func awaitSignals(ctx restate.Context, in contract.Wait) ([]contract.Outcome, error) {
	if in.ID != "" {
		if err := tell(ctx, "id", in.ID, ctx.Request().ID); err != nil {
			return nil, err
		}
	}
	out := make([]contract.Outcome, len(in.Names))
	for i, name := range in.Names {
		out[i] = outcome(restate.Signal[string](ctx, name).Result())
	}
	return out, nil
}

// sendSignal sends a signal to another invocation.
func sendSignal(ctx restate.Context, in contract.Signal) (restate.Void, error) {
	if in.Reject != "" {
		restate.RejectSignal(ctx, in.Invocation, in.Name, errors.New(in.Reject))
	} else {
		restate.ResolveSignal(ctx, in.Invocation, in.Name, in.Value)
	}
	return restate.Void{}, nil
}
