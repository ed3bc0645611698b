package main

import (
	"encoding/json"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/sdk/contract"
)

// callerService covers calls, sends and waiting for several operations concurrently.
func callerService() restate.ServiceDefinition {
	return restate.NewService("GoCaller").
		Handler("call", restate.NewServiceHandler(call)).
		Handler("send", restate.NewServiceHandler(send)).
		Handler("catch", restate.NewServiceHandler(catch)).
		Handler("fanout", restate.NewServiceHandler(fanout)).
		Handler("settle", restate.NewServiceHandler(settle)).
		Handler("race", restate.NewServiceHandler(race)).
		Handler("timeout", restate.NewServiceHandler(timeout)).
		Handler("cancel", restate.NewServiceHandler(cancel)).
		Handler("attach", restate.NewServiceHandler(attach)).
		Handler("catchAttach", restate.NewServiceHandler(catchAttach))
}

// client returns a client of the handler named in the input.
func client(ctx restate.Context, in contract.Call) restate.Client[any, json.RawMessage] {
	if in.Key != "" {
		return restate.Object[json.RawMessage](ctx, in.Service, in.Key, in.Handler)
	}
	return restate.Service[json.RawMessage](ctx, in.Service, in.Handler)
}

// call returns what the callee returned.
func call(ctx restate.Context, in contract.Call) (json.RawMessage, error) {
	var opts []restate.RequestOption
	if in.IdempotencyKey != "" {
		opts = append(opts, restate.WithIdempotencyKey(in.IdempotencyKey))
	}
	if len(in.Headers) > 0 {
		opts = append(opts, restate.WithHeaders(in.Headers))
	}
	return client(ctx, in).Request(in.Input, opts...)
}

// send invokes one-way and returns the id of the invocation.
func send(ctx restate.Context, in contract.Call) (string, error) {
	var opts []restate.SendOption
	if in.DelayMillis > 0 {
		opts = append(opts, restate.WithDelay(time.Duration(in.DelayMillis)*time.Millisecond))
	}
	if in.IdempotencyKey != "" {
		opts = append(opts, restate.WithIdempotencyKey(in.IdempotencyKey))
	}
	if len(in.Headers) > 0 {
		opts = append(opts, restate.WithHeaders(in.Headers))
	}
	return client(ctx, in).Send(in.Input, opts...).GetInvocationId(), nil
}

// catch calls and returns the callee's terminal error.
func catch(ctx restate.Context, in contract.Call) (contract.Failure, error) {
	_, err := client(ctx, in).Request(in.Input)
	return caught(err), nil
}

// start makes all calls without waiting for any.
func start(ctx restate.Context, in []contract.Call) []restate.ResponseFuture[json.RawMessage] {
	calls := make([]restate.ResponseFuture[json.RawMessage], len(in))
	for i, c := range in {
		calls[i] = client(ctx, c).RequestFuture(c.Input)
	}
	return calls
}

// fanout makes all calls concurrently and returns all responses, in the order of calls.
func fanout(ctx restate.Context, in []contract.Call) ([]json.RawMessage, error) {
	out := make([]json.RawMessage, len(in))
	for i, c := range start(ctx, in) {
		var err error
		if out[i], err = c.Response(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// settle makes all calls concurrently, takes the responses in order of arrival and
// returns the failures of those that failed, in the order of calls.
func settle(ctx restate.Context, in []contract.Call) ([]contract.Failure, error) {
	calls := start(ctx, in)
	index := map[restate.Future]int{}
	futures := make([]restate.Future, len(calls))
	for i, c := range calls {
		futures[i] = c
		index[c] = i
	}
	out := make([]contract.Failure, len(in))
	for f, err := range restate.Wait(ctx, futures...) {
		if err != nil {
			return nil, err
		}
		i := index[f]
		_, failure := calls[i].Response()
		out[i] = caught(failure)
	}
	return out, nil
}

// race sleeps several times concurrently and returns the index of the first to end.
func race(ctx restate.Context, in contract.Race) (int, error) {
	sleeps := make([]restate.Future, len(in.Millis))
	for i, ms := range in.Millis {
		sleeps[i] = restate.After(ctx, time.Duration(ms)*time.Millisecond)
	}
	first, err := restate.WaitFirst(ctx, sleeps...)
	if err != nil {
		return 0, err
	}
	for i, s := range sleeps {
		if s == first {
			return i, nil
		}
	}
	return 0, restate.TerminalErrorf("the first is none of them")
}

// timeout waits for a call for a limited time and reports whether it was in time.
func timeout(ctx restate.Context, in contract.Timeout) (bool, error) {
	answer := client(ctx, in.Call).RequestFuture(in.Call.Input)
	limit := restate.After(ctx, time.Duration(in.Millis)*time.Millisecond)
	first, err := restate.WaitFirst(ctx, answer, limit)
	if err != nil {
		return false, err
	}
	return first == restate.Future(answer), nil
}

// cancel cancels another invocation.
func cancel(ctx restate.Context, id string) (restate.Void, error) {
	restate.CancelInvocation(ctx, id)
	return restate.Void{}, nil
}

// attach waits for the result of another invocation.
func attach(ctx restate.Context, id string) (json.RawMessage, error) {
	return restate.AttachInvocation[json.RawMessage](ctx, id).Response()
}

// catchAttach returns the terminal error of another invocation.
func catchAttach(ctx restate.Context, id string) (contract.Failure, error) {
	_, err := attach(ctx, id)
	return caught(restate.AsTerminalError(err)), nil
}
