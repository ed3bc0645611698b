package main

import (
	"cmp"
	"errors"
	"os"
	"strings"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// version is the version of this process.
var version = cmp.Or(os.Getenv("VERSION"), "v1")

// versionedObject covers work that is in flight while another version is deployed.
func versionedObject(opts ...restate.ServiceDefinitionOption) restate.ServiceDefinition {
	return restate.NewObject("GoVersioned", opts...).
		Handler("version", restate.NewObjectSharedHandler(func(restate.ObjectSharedContext, restate.Void) (string, error) {
			return version, nil
		})).
		Handler("work", restate.NewObjectHandler(work)).
		Handler("chain", restate.NewObjectHandler(chain))
}

// link runs a step that records and gives the version.
func link(ctx restate.Context, id, name string) (string, error) {
	return restate.Run(ctx, func(ctx restate.RunContext) (string, error) {
		_, err := record.Effect(ctx, id+"-"+name, version)
		return version, err
	}, restate.WithName(name))
}

// work returns the version before and after it waited for an awakeable.
func work(ctx restate.ObjectContext, in contract.Step) (contract.Versions, error) {
	before, err := link(ctx, in.ID, "before")
	if err != nil {
		return contract.Versions{}, err
	}
	a := restate.Awakeable[string](ctx)
	if err := tell(ctx, "publish", in.ID, a.Id()); err != nil {
		return contract.Versions{}, err
	}
	if _, err := a.Result(); err != nil {
		return contract.Versions{}, err
	}
	return contract.Versions{Before: before, After: version}, nil
}

// chain runs three steps; its end is defective in v1.
func chain(ctx restate.ObjectContext, in contract.Step) (string, error) {
	var results []string
	for _, name := range []string{"a", "b", "c"} {
		r, err := link(ctx, in.ID, name)
		if err != nil {
			return "", err
		}
		results = append(results, r)
	}
	if version == "v1" && in.Fail > 0 {
		return "", restate.ToTerminalError(errors.New("broken in v1"))
	}
	return strings.Join(results, ","), nil
}
