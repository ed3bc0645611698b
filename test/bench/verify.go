package main

import (
	"context"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
)

// verify compares the executions at the endpoint with the responses. Missing executions
// are an error, and so are repeated executions of one-way calls, which no response would
// reveal. Other repeated executions are allowed and reported in the note.
func (l *load) verify(ctx context.Context, o outcome) (note string, err error) {
	want := o.accepted * l.step.per(l.step.size)
	got := o.executed.Done[l.step.counter]
	switch {
	case got < want:
		return "", fmt.Errorf("%d operations require %d executions of %s; there were %d", o.accepted, want, l.step.counter, got)
	case got > want && l.step.oneWay:
		return "", fmt.Errorf("%d sends were executed %d times", want, got)
	case got > want:
		note = fmt.Sprintf("%d executions repeated", got-want)
	}
	if l.step.name == "counter" {
		err = l.verifyCounters(ctx, o.accepted)
	}
	return note, err
}

// verifyCounters reads all counters and compares their sum with the number of adds.
func (l *load) verifyCounters(ctx context.Context, adds int64) error {
	readers := min(l.step.size, 16)
	sums := make([]int64, readers)
	g, ctx := errgroup.WithContext(ctx)
	for reader := range readers {
		g.Go(func() error {
			c, err := l.testbed.dial(ctx, l.step)
			if err != nil {
				return err
			}
			defer c.close()
			for key := reader; key < l.step.size; key += readers {
				value, err := readCounter(c, callPath(l.testbed.prefix, "Counter", counterKey(key), "get"))
				if err != nil {
					return err
				}
				sums[reader] += value
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("read counters: %w", err)
	}
	var sum int64
	for _, s := range sums {
		sum += s
	}
	if sum != adds {
		return fmt.Errorf("%d adds were acknowledged, but the counters total %d", adds, sum)
	}
	return nil
}

func readCounter(c *conn, path string) (int64, error) {
	status, resp, err := c.post(path, nil)
	if err != nil {
		return 0, err
	}
	value, err := strconv.ParseInt(string(resp), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: status %d, %.200q", path, status, resp)
	}
	return value, nil
}
