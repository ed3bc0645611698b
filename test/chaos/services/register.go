package main

import (
	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// register is an object that holds a number.
func register(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("Register", retry).
		Handler("change", restate.NewObjectHandler(writeRegister)).
		Handler("peek", restate.NewObjectSharedHandler(readRegister))
}

// writeRegister writes the value, conditionally if in.If is set, and returns the value
// of the register.
func writeRegister(ctx restate.ObjectContext, in history.Change) (int, error) {
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

// readRegister reads without queueing behind writers.
func readRegister(ctx restate.ObjectSharedContext, _ restate.Void) (int, error) {
	return restate.Get[int](ctx, "value")
}
