package main

import (
	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// register is an object that holds one number.
func register(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("Register", retry).
		Handler("change", restate.NewObjectHandler(change)).
		Handler("peek", restate.NewObjectSharedHandler(peek))
}

// change writes, or writes on a condition, and returns what the register holds then.
func change(ctx restate.ObjectContext, in history.Change) (int, error) {
	value, err := restate.Get[int](ctx, "value")
	if err != nil {
		return 0, err
	}
	if in.If != nil && *in.If != value {
		return value, nil
	}
	restate.Set(ctx, "value", in.Value)
	return in.Value, nil
}

// peek reads without waiting for those who write.
func peek(ctx restate.ObjectSharedContext, _ restate.Void) (int, error) {
	return restate.Get[int](ctx, "value")
}
