package main

import (
	"errors"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// awakeablesService covers awakeables, waited for and completed by handlers.
func awakeablesService() restate.ServiceDefinition {
	return restate.NewService("GoAwakeables").
		Handler("await", restate.NewServiceHandler(awaitAwakeables)).
		Handler("complete", restate.NewServiceHandler(completeAwakeable)).
		Handler("delegate", restate.NewServiceHandler(delegate))
}

// awaitAwakeables creates in.N awakeables, publishes their ids and waits for each.
func awaitAwakeables(ctx restate.Context, in contract.Await) ([]contract.Outcome, error) {
	awakeables := make([]restate.AwakeableFuture[string], in.N)
	ids := make([]string, in.N)
	for i := range awakeables {
		awakeables[i] = restate.Awakeable[string](ctx)
		ids[i] = awakeables[i].Id()
	}
	if err := tell(ctx, "publish", in.ID, ids...); err != nil {
		return nil, err
	}
	out := make([]contract.Outcome, in.N)
	for i, a := range awakeables {
		out[i] = outcome(a.Result())
	}
	return out, nil
}

// tell records values under id in one step.
func tell(ctx restate.Context, step, id string, values ...string) error {
	return restate.RunVoid(ctx, func(ctx restate.RunContext) error {
		for _, v := range values {
			if _, err := record.Effect(ctx, id, v); err != nil {
				return err
			}
		}
		return nil
	}, restate.WithName(step))
}

// outcome converts the result of an awaited operation.
func outcome(value string, err restate.TerminalError) contract.Outcome {
	if err != nil {
		return contract.Outcome{Code: int(err.Code()), Message: err.Message()}
	}
	return contract.Outcome{Value: value}
}

// completeAwakeable resolves or rejects an awakeable of another invocation.
func completeAwakeable(ctx restate.Context, in contract.Completion) (restate.Void, error) {
	if in.Reject != "" {
		restate.RejectAwakeable(ctx, in.Awakeable, errors.New(in.Reject))
	} else {
		restate.ResolveAwakeable(ctx, in.Awakeable, in.Value)
	}
	return restate.Void{}, nil
}

// delegate lets an object complete the awakeable that it waits for.
func delegate(ctx restate.Context, in contract.Delegate) (string, error) {
	a := restate.Awakeable[string](ctx)
	if _, err := restate.Object[restate.Void](ctx, in.Holder, in.Key, "hold").Request(a.Id()); err != nil {
		return "", err
	}
	return a.Result()
}

// holderObject keeps the ID of an awakeable until a request to complete it.
func holderObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("GoHolder", opts...).
		Handler("hold", restate.NewObjectHandler(func(ctx restate.ObjectContext, id string) (restate.Void, error) {
			restate.Set(ctx, "id", id)
			return restate.Void{}, nil
		})).
		Handler("has", restate.NewObjectHandler(func(ctx restate.ObjectContext, _ restate.Void) (bool, error) {
			id, err := restate.Get[*string](ctx, "id")
			return id != nil, err
		})).
		Handler("complete", restate.NewObjectHandler(completeHeld))
}

// completeHeld completes the awakeable that the object holds, and forgets it.
func completeHeld(ctx restate.ObjectContext, in contract.Completion) (restate.Void, error) {
	id, err := restate.Get[*string](ctx, "id")
	if err != nil {
		return restate.Void{}, err
	}
	if id == nil {
		return restate.Void{}, restate.ToTerminalError(errors.New("nothing held"), restate.WithErrorCode(404))
	}
	restate.Clear(ctx, "id")
	in.Awakeable = *id
	return completeAwakeable(ctx, in)
}
