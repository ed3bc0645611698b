package main

import (
	"errors"
	"strconv"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// utilsService holds what other services call and what is counted.
func utilsService() restate.ServiceDefinition {
	return restate.NewService("GoUtils").
		Handler("say", restate.NewServiceHandler(say)).
		Handler("id", restate.NewServiceHandler(func(ctx restate.Context, _ restate.Void) (string, error) {
			return ctx.Request().ID, nil
		})).
		Handler("effects", restate.NewServiceHandler(effects)).
		Handler("sleeps", restate.NewServiceHandler(sleeps))
}

// say responds after a sleep and a step, or fails.
func say(ctx restate.Context, in contract.Say) (string, error) {
	if in.Millis > 0 {
		if err := restate.Sleep(ctx, millis(in.Millis)); err != nil {
			return "", err
		}
	}
	if in.ID != "" {
		if err := restate.RunVoid(ctx, func(ctx restate.RunContext) error {
			if _, err := record.Effect(ctx, in.ID, in.Value); err != nil {
				return err
			}
			return record.Wait(ctx, in.Gate)
		}, restate.WithName("say")); err != nil {
			return "", err
		}
	}
	if in.Code != 0 {
		return "", restate.ToTerminalError(errors.New(in.Message), restate.WithErrorCode(restate.Code(in.Code)))
	}
	return in.Value, nil
}

// effects runs in.N steps concurrently and returns how many were run.
func effects(ctx restate.Context, in contract.Step) (int, error) {
	steps := make([]restate.RunAsyncFuture[int], in.N)
	for i := range steps {
		steps[i] = restate.RunAsync(ctx, func(ctx restate.RunContext) (int, error) {
			_, err := record.Effect(ctx, in.ID, strconv.Itoa(i))
			return 1, err
		})
	}
	sum := 0
	for _, s := range steps {
		n, err := s.Result()
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// sleeps sleeps several times concurrently and returns how often.
func sleeps(ctx restate.Context, in contract.Race) (int, error) {
	futures := make([]restate.AfterFuture, len(in.Millis))
	for i, ms := range in.Millis {
		futures[i] = restate.After(ctx, millis(ms))
	}
	for _, f := range futures {
		if err := f.Done(); err != nil {
			return 0, err
		}
	}
	return len(futures), nil
}
