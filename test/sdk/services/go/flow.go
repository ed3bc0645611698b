package main

import (
	"errors"

	restate "github.com/restatedev/sdk-go"

	"platform/test/sdk/contract"
)

// flowWorkflow covers workflows and their durable promises.
func flowWorkflow(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewWorkflow("GoFlow", opts...).
		Handler("run", restate.NewWorkflowHandler(runFlow)).
		Handler("await", restate.NewWorkflowSharedHandler(awaitPromise)).
		Handler("peek", restate.NewWorkflowSharedHandler(peekPromise)).
		Handler("complete", restate.NewWorkflowSharedHandler(completePromise)).
		Handler("text", restate.NewWorkflowSharedHandler(func(ctx restate.WorkflowSharedContext, _ restate.Void) (contract.OpResult, error) {
			return read(ctx, contract.Op{Op: "get", Key: "text"})
		}))
}

// runFlow waits for the promises that the input names, one after the other.
func runFlow(ctx restate.WorkflowContext, in contract.Flow) ([]string, error) {
	if err := tell(ctx, "run", in.ID, "run"); err != nil {
		return nil, err
	}
	restate.Set(ctx, "text", in.Text)
	values := []string{}
	for _, name := range in.Promises {
		v, err := awaitPromise(ctx, name)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		restate.Set(ctx, "got", len(values))
	}
	return values, nil
}

// awaitPromise waits for one promise.
func awaitPromise(ctx restate.WorkflowSharedContext, name string) (string, error) {
	return restate.Promise[string](ctx, name).Result()
}

// peekPromise tells what a promise has come to so far.
func peekPromise(ctx restate.WorkflowSharedContext, name string) (contract.Outcome, error) {
	v, err := restate.Promise[*string](ctx, name).Peek()
	if err == nil && v == nil {
		return contract.Outcome{}, nil
	}
	if v == nil {
		v = new(string)
	}
	o := outcome(*v, err)
	o.Index = 1
	return o, nil
}

// completePromise resolves or rejects a promise; doing so twice is an error.
func completePromise(ctx restate.WorkflowSharedContext, in contract.Completion) (contract.Failure, error) {
	p := restate.Promise[string](ctx, in.Promise)
	if in.Reject != "" {
		return caught(p.Reject(errors.New(in.Reject))), nil
	}
	return caught(p.Resolve(in.Value)), nil
}
