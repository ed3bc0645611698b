package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/harness/record"
	"platform/test/sdk/contract"
)

// quick is the retry policy of handlers and steps that are meant to fail.
const quick = 10 * time.Millisecond

// stepsService covers run, sleep, errors, retries and randomness.
func stepsService() restate.ServiceDefinition {
	return restate.NewService("GoSteps", restate.WithInvocationRetryPolicy(restate.WithInitialRetryInterval(quick))).
		Handler("once", restate.NewServiceHandler(once)).
		Handler("many", restate.NewServiceHandler(many)).
		Handler("retry", restate.NewServiceHandler(retry)).
		Handler("exhaust", restate.NewServiceHandler(exhaust)).
		Handler("exhaustTime", restate.NewServiceHandler(exhaustTime)).
		Handler("later", restate.NewServiceHandler(later)).
		Handler("refuse", restate.NewServiceHandler(refuse)).
		Handler("flaky", restate.NewServiceHandler(flaky)).
		Handler("fail", restate.NewServiceHandler(fail)).
		Handler("sleep", restate.NewServiceHandler(sleep)).
		Handler("random", restate.NewServiceHandler(random)).
		Handler("big", restate.NewServiceHandler(big))
}

// once runs one recorded step, behind a gate on request, and returns its ordinal.
func once(ctx restate.Context, in contract.Step) (int, error) {
	return restate.Run(ctx, func(ctx restate.RunContext) (int, error) {
		n, err := record.Effect(ctx, in.ID, "step")
		if err != nil {
			return 0, err
		}
		return n, record.Wait(ctx, in.Gate)
	}, restate.WithName("once"))
}

// many runs n recorded steps and returns the sum of their results.
func many(ctx restate.Context, in contract.Step) (int, error) {
	sum := 0
	for i := range in.N {
		v, err := restate.Run(ctx, func(ctx restate.RunContext) (int, error) {
			_, err := record.Effect(ctx, in.ID, strconv.Itoa(i))
			return i, err
		})
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// retry runs a step that fails in.Fail times before it succeeds.
func retry(ctx restate.Context, in contract.Step) (int, error) {
	return restate.Run(ctx, func(ctx restate.RunContext) (int, error) {
		n, err := record.Effect(ctx, in.ID, "try")
		if err == nil && n <= in.Fail {
			err = fmt.Errorf("attempt %d is meant to fail", n)
		}
		return n, err
	}, restate.WithInitialRetryInterval(quick))
}

// never is a step that records its tries and does not succeed.
func never(in contract.Step) func(restate.RunContext) error {
	return func(ctx restate.RunContext) error {
		if _, err := record.Effect(ctx, in.ID, "try"); err != nil {
			return err
		}
		return errors.New(in.Message)
	}
}

// exhaust runs a step that never succeeds and may be tried in.N times.
func exhaust(ctx restate.Context, in contract.Step) (contract.Failure, error) {
	err := restate.RunVoid(ctx, never(in),
		restate.WithInitialRetryInterval(quick), restate.WithMaxRetryAttempts(uint(in.N)))
	return caught(err), nil
}

// exhaustTime runs a step that never succeeds and may be tried for in.Millis.
func exhaustTime(ctx restate.Context, in contract.Step) (contract.Failure, error) {
	err := restate.RunVoid(ctx, never(in),
		restate.WithInitialRetryInterval(quick), restate.WithMaxRetryDuration(millis(in.Millis)))
	return caught(err), nil
}

// later runs a step that fails in.Fail times and is retried after in.Millis.
func later(ctx restate.Context, in contract.Step) (int, error) {
	return restate.Run(ctx, func(ctx restate.RunContext) (int, error) {
		n, err := record.Effect(ctx, in.ID, strconv.FormatInt(time.Now().UnixMilli(), 10))
		if err == nil && n <= in.Fail {
			err = fmt.Errorf("attempt %d is meant to fail", n)
		}
		return n, err
	}, restate.WithInitialRetryInterval(millis(in.Millis)), restate.WithRetryIntervalFactor(1))
}

// refuse runs a step that ends with a terminal error.
func refuse(ctx restate.Context, in contract.Step) (contract.Failure, error) {
	err := restate.RunVoid(ctx, func(ctx restate.RunContext) error {
		if _, err := record.Effect(ctx, in.ID, "try"); err != nil {
			return err
		}
		return restate.ToTerminalError(errors.New(in.Message), restate.WithErrorCode(restate.Code(in.Code)))
	})
	return caught(err), nil
}

// flaky runs a step, then fails the attempt in.Fail times before it succeeds.
func flaky(ctx restate.Context, in contract.Step) (int, error) {
	if _, err := once(ctx, contract.Step{ID: in.ID + "-step"}); err != nil {
		return 0, err
	}
	return attempt(ctx, in)
}

// attempt records an attempt, outside of any step, and fails the first in.Fail.
func attempt(ctx restate.Context, in contract.Step) (int, error) {
	n, err := record.Effect(ctx, in.ID, "attempt")
	if err == nil && n <= in.Fail {
		err = fmt.Errorf("attempt %d is meant to fail", n)
	}
	return n, err
}

// fail ends with a terminal error.
func fail(_ restate.Context, in contract.Step) (int, error) {
	return 0, restate.ToTerminalError(errors.New(in.Message),
		restate.WithErrorCode(restate.Code(in.Code)), restate.WithMetadataMap(in.Metadata))
}

// sleep sleeps between two recorded steps and returns the time of both, ms. Each
// attempt that has the result of the first step is recorded.
func sleep(ctx restate.Context, in contract.Step) ([]int64, error) {
	now := func(ctx restate.RunContext) (int64, error) {
		at := time.Now().UnixMilli()
		_, err := record.Effect(ctx, in.ID, strconv.FormatInt(at, 10))
		return at, err
	}
	from, err := restate.Run(ctx, now)
	if err != nil {
		return nil, err
	}
	if _, err := record.Effect(ctx, in.ID+"-kept", "attempt"); err != nil {
		return nil, err
	}
	if err := restate.Sleep(ctx, millis(in.Millis)); err != nil {
		return nil, err
	}
	to, err := restate.Run(ctx, now)
	if err != nil {
		return nil, err
	}
	return []int64{from, to}, nil
}

// random reports what it draws on each of its attempts, of which all but the
// last fail, and returns what it drew.
func random(ctx restate.Context, in contract.Step) (contract.Random, error) {
	drawn := contract.Random{Number: restate.Rand(ctx).Float64(), UUID: restate.UUID(ctx).String()}
	text, err := json.Marshal(drawn)
	if err != nil {
		return drawn, err
	}
	n, err := record.Effect(ctx, in.ID, string(text))
	if err == nil && n <= in.Fail {
		err = fmt.Errorf("attempt %d is meant to fail", n)
	}
	return drawn, err
}

// big returns a step's result of in.N bytes.
func big(ctx restate.Context, in contract.Step) (string, error) {
	return restate.Run(ctx, func(restate.RunContext) (string, error) {
		return strings.Repeat("x", in.N), nil
	})
}

// caught describes a terminal error that the handler handles itself.
func caught(err restate.TerminalError) contract.Failure {
	if err == nil {
		return contract.Failure{}
	}
	f := contract.Failure{Code: int(err.Code()), Message: err.Message()}
	if metadata := err.Metadata().ToMap(); len(metadata) > 0 {
		f.Metadata = metadata
	}
	return f
}

func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }
