package main

import (
	"time"

	restate "github.com/restatedev/sdk-go"
)

// bench has the handlers.
type bench struct{ counts *counts }

// echo returns its input, without a durable step.
func (b *bench) echo(_ restate.Context, in string) (string, error) {
	b.counts.add("echo")
	return in, nil
}

// steps takes n durable steps one after the other and returns the sum of their
// results, 0 + 1 + … + n-1.
func (b *bench) steps(ctx restate.Context, n int) (int, error) {
	sum := 0
	for i := range n {
		result, err := restate.Run(ctx, func(restate.RunContext) (int, error) {
			b.counts.add("step")
			return i, nil
		})
		if err != nil {
			return 0, err
		}
		sum += result
	}
	return sum, nil
}

// fanout calls identity n times at once and returns the sum of the answers.
func (b *bench) fanout(ctx restate.Context, n int) (int, error) {
	calls := make([]restate.ResponseFuture[int], n)
	for i := range calls {
		calls[i] = restate.Service[int](ctx, "Bench", "identity").RequestFuture(i)
	}
	sum := 0
	for _, call := range calls {
		answer, err := call.Response()
		if err != nil {
			return 0, err
		}
		sum += answer
	}
	return sum, nil
}

// identity is echo for numbers.
func (b *bench) identity(_ restate.Context, n int) (int, error) {
	b.counts.add("identity")
	return n, nil
}

// sleep sleeps durably and notes how late it goes on. What it knows of a sleep
// that began in an earlier attempt is kept here, so the time between the attempts
// counts as well.
func (b *bench) sleep(ctx restate.Context, ms int) (int, error) {
	d := time.Duration(ms) * time.Millisecond
	id := ctx.Request().ID
	due := b.counts.fallsAsleep(id, d)
	if err := restate.Sleep(ctx, d); err != nil {
		return 0, err
	}
	b.counts.wakesUp(time.Since(due))
	return ms, nil
}

const value = "value"

// add adds delta to the counter and returns its new value.
func (b *bench) add(ctx restate.ObjectContext, delta int64) (int64, error) {
	n, err := restate.Get[int64](ctx, value)
	if err != nil {
		return 0, err
	}
	n += delta
	restate.Set(ctx, value, n)
	b.counts.add("add")
	return n, nil
}

// get returns the counter's value.
func (b *bench) get(ctx restate.ObjectSharedContext, _ restate.Void) (int64, error) {
	return restate.Get[int64](ctx, value)
}
