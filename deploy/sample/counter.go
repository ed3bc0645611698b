package sample

import restate "github.com/restatedev/sdk-go"

// counter is a virtual object: each key has state of its own, and handlers that may write it run
// one after the other, so there is nothing to lock. A shared handler only reads and runs
// concurrently with them.
func counter() restate.ServiceDefinition {
	return restate.NewObject("Counter").
		Handler("add", restate.NewObjectHandler(add)).
		Handler("get", restate.NewObjectSharedHandler(get)).
		Handler("reset", restate.NewObjectHandler(reset))
}

// value is the name of the only state entry.
const value = "value"

// add adds delta to the counter and returns the new value.
func add(ctx restate.ObjectContext, delta int) (int, error) {
	n, err := restate.Get[int](ctx, value)
	if err != nil {
		return 0, err
	}
	n += delta
	restate.Set(ctx, value, n)
	return n, nil
}

// get returns the value, 0 if nothing was added yet.
func get(ctx restate.ObjectSharedContext, _ restate.Void) (int, error) {
	return restate.Get[int](ctx, value)
}

// reset deletes the counter.
func reset(ctx restate.ObjectContext, _ restate.Void) (restate.Void, error) {
	restate.ClearAll(ctx)
	return restate.Void{}, nil
}
