package main

import (
	"errors"
	"slices"
	"strconv"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/encoding"

	"platform/test/sdk/contract"
)

// storeObject covers state.
func storeObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	opts = append(opts, restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(quick)))
	return restate.NewObject("GoStore", opts...).
		Handler("script", restate.NewObjectHandler(script)).
		Handler("peek", restate.NewObjectSharedHandler(peek))
}

// script carries out state operations and returns the results of the reads.
func script(ctx restate.ObjectContext, ops []contract.Op) ([]contract.OpResult, error) {
	results := []contract.OpResult{}
	for _, op := range ops {
		switch op.Op {
		case "set":
			restate.Set(ctx, op.Key, op.Value)
		case "setBytes":
			restate.Set(ctx, op.Key, []byte(op.Value), restate.WithCodec(encoding.BinaryCodec))
		case "clear":
			restate.Clear(ctx, op.Key)
		case "clearAll":
			restate.ClearAll(ctx)
		case "sleep":
			if err := restate.Sleep(ctx, time.Millisecond); err != nil {
				return nil, err
			}
		case "retry":
			fail, _ := strconv.Atoi(op.Value)
			if _, err := attempt(ctx, contract.Step{ID: op.Key, Fail: fail}); err != nil {
				return nil, err
			}
		case "fail":
			return nil, restate.ToTerminalError(errors.New(op.Value), restate.WithErrorCode(422))
		default:
			result, err := read(ctx, op)
			if err != nil {
				return nil, err
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// read carries out one of the reading operations.
func read(ctx restate.ObjectSharedContext, op contract.Op) (contract.OpResult, error) {
	switch op.Op {
	case "get":
		v, err := restate.Get[*string](ctx, op.Key)
		if err != nil || v == nil {
			return contract.OpResult{}, err
		}
		return contract.OpResult{Present: true, Value: *v}, nil
	case "getBytes":
		v, err := restate.Get[[]byte](ctx, op.Key, restate.WithCodec(encoding.BinaryCodec))
		return contract.OpResult{Present: v != nil, Value: string(v)}, err
	case "keys":
		keys, err := restate.Keys(ctx)
		slices.Sort(keys)
		return contract.OpResult{Keys: keys}, err
	}
	return contract.OpResult{}, restate.TerminalErrorf("unknown operation %q", op.Op)
}

// peek reads one key without waiting for the exclusive handler.
func peek(ctx restate.ObjectSharedContext, key string) (contract.OpResult, error) {
	return read(ctx, contract.Op{Op: "get", Key: key})
}

// queueObject covers the order of exclusive handlers and shared ones beside them.
func queueObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("GoQueue", opts...).
		Handler("hold", restate.NewObjectHandler(hold)).
		Handler("append", restate.NewObjectHandler(appendValue)).
		Handler("list", restate.NewObjectSharedHandler(list))
}

// hold occupies the key until the gate opens.
func hold(ctx restate.ObjectContext, in contract.Step) (int, error) {
	return once(ctx, in)
}

// appendValue adds a value to the list, with a pause between reading and writing.
func appendValue(ctx restate.ObjectContext, value string) (int, error) {
	values, err := restate.Get[[]string](ctx, "values")
	if err != nil {
		return 0, err
	}
	if err := restate.Sleep(ctx, time.Millisecond); err != nil {
		return 0, err
	}
	values = append(values, value)
	restate.Set(ctx, "values", values)
	return len(values), nil
}

// list returns the values appended so far.
func list(ctx restate.ObjectSharedContext, _ restate.Void) ([]string, error) {
	return restate.Get[[]string](ctx, "values")
}
