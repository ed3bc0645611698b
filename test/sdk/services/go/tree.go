package main

import (
	"fmt"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// treeObject covers trees of invocations.
func treeObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("GoTree", opts...).
		Handler("grow", restate.NewObjectHandler(grow)).
		Handler("ping", restate.NewObjectHandler(ping))
}

// grow starts the children of a node and waits for them; leaves wait indefinitely.
func grow(ctx restate.ObjectContext, in contract.Tree) (restate.Void, error) {
	key := restate.Key(ctx)
	if _, err := record.Effect(ctx, in.ID, key); err != nil {
		return restate.Void{}, err
	}
	err := awaitChildren(ctx, in)
	if err == nil {
		return restate.Void{}, nil
	}
	if told := tell(ctx, "end", in.ID+"-ended", key); told != nil {
		return restate.Void{}, told
	}
	return restate.Void{}, err
}

func awaitChildren(ctx restate.ObjectContext, in contract.Tree) restate.TerminalError {
	below := in
	below.Depth--
	var calls []restate.ResponseFuture[restate.Void]
	for i := range in.Width {
		if in.Depth == 0 {
			break
		}
		child := restate.Object[restate.Void](ctx, "GoTree", fmt.Sprintf("%s.%d", restate.Key(ctx), i), "grow")
		if in.Send {
			child.Send(below)
		} else {
			calls = append(calls, child.RequestFuture(below))
		}
	}
	if len(calls) == 0 {
		_, err := restate.Awakeable[string](ctx).Result()
		return err
	}
	for _, c := range calls {
		if _, err := c.Response(); err != nil {
			return err
		}
	}
	return nil
}
