package main

import (
	"fmt"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// driftObject covers handlers that behave differently on some of their attempts.
func driftObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	opts = append(opts, restate.WithInvocationRetryPolicy(
		restate.WithInitialRetryInterval(quick), restate.WithRetryIntervalFactor(1)))
	return restate.NewObject("GoDrift", opts...).
		Handler("run", restate.NewObjectHandler(drift))
}

// drift does one thing on its first and last attempts and another between them.
func drift(ctx restate.ObjectContext, in contract.Drift) (int, error) {
	n, err := record.Effect(ctx, in.ID, "attempt")
	if err != nil {
		return 0, err
	}
	do := in.First
	if n > 1 && n < in.Heal {
		do = in.Second
	}
	switch do {
	case "sleep":
		err = restate.Sleep(ctx, time.Millisecond)
	case "run", "other":
		err = restate.RunVoid(ctx, func(restate.RunContext) error { return nil }, restate.WithName(do))
	case "set":
		restate.Set(ctx, "k", "v")
	case "get":
		_, err = restate.Get[*string](ctx, "k")
	case "call":
		_, err = restate.Service[string](ctx, "GoUtils", "say").Request(contract.Say{Value: "x"})
	}
	if err == nil && n < in.Heal {
		err = fmt.Errorf("attempt %d is meant to fail", n)
	}
	return n, err
}
