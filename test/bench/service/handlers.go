package main

import (
	"time"

	restate "github.com/restatedev/sdk-go"
)

// handlers are the handlers of the benchmark services.
type handlers struct{ counts *counts }

// echo returns its input, without a durable step.
func (b *handlers) echo(_ restate.Context, in string) (string, error) {
	b.counts.add("echo")
	return in, nil
}

// payload is echo for bytes, without encoding them as JSON.
func (b *handlers) payload(_ restate.Context, in []byte) ([]byte, error) {
	b.counts.add("payload")
	return in, nil
}

// steps runs n sequential durable steps and returns the sum of their results, 0 + 1 + … +
// n-1.
func (b *handlers) steps(ctx restate.Context, n int) (int, error) {
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

// fanout makes n concurrent calls of identity and returns the sum of the responses.
func (b *handlers) fanout(ctx restate.Context, n int) (int, error) {
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
func (b *handlers) identity(_ restate.Context, n int) (int, error) {
	b.counts.add("identity")
	return n, nil
}

// sleep sleeps durably and records the delay of the wake-up. The wake-up time is kept from
// the first attempt, so that the time between attempts counts.
func (b *handlers) sleep(ctx restate.Context, ms int) (int, error) {
	d := time.Duration(ms) * time.Millisecond
	id := ctx.Request().ID
	due := b.counts.startSleep(id, d)
	if err := restate.Sleep(ctx, d); err != nil {
		return 0, err
	}
	b.counts.endSleep(time.Since(due))
	return ms, nil
}

// hold keeps its slot for ms milliseconds without a durable step.
func (b *handlers) hold(_ restate.Context, ms int) (int, error) {
	b.counts.startHold()
	time.Sleep(time.Duration(ms) * time.Millisecond)
	b.counts.endHold()
	return ms, nil
}

const value = "value"

// add adds delta to the counter and returns its new value.
func (b *handlers) add(ctx restate.ObjectContext, delta int64) (int64, error) {
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
func (b *handlers) get(ctx restate.ObjectSharedContext, _ restate.Void) (int64, error) {
	return restate.Get[int64](ctx, value)
}
