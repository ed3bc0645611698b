package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"platform/test/harness"
)

// plan is what is to be measured.
type plan struct {
	targets          []harness.Target
	steps            []step
	rounds           int
	duration, warmup time.Duration
	endpoint         string    // binary of the service
	dir              string    // where data goes, "" for the system's temporary directory
	progress         io.Writer // a line for each result
	records          io.Writer // results as JSON lines
}

// order is the order of the targets in a round: it turns round each time, so that
// none always comes second.
func order[T any](targets []T, round int) []T {
	list := slices.Clone(targets)
	if round%2 == 0 {
		slices.Reverse(list)
	}
	return list
}

// run measures every step on every target in every round, each on fresh data. It
// returns what was measured until then together with the first error.
func (p *plan) run(ctx context.Context) ([]result, error) {
	var results []result
	for round := 1; round <= p.rounds; round++ {
		for _, s := range p.steps {
			for _, target := range order(p.targets, round) {
				r, err := p.measure(ctx, target, s)
				if err != nil {
					return results, fmt.Errorf("round %d, %s on %s: %w", round, s, target.Name, err)
				}
				r.Round, r.Target = round, target.Name
				results = append(results, r)
				fmt.Fprintf(p.progress, "round %d  %-18s %-14s %8.0f op/s  p50 %.2f ms  p99 %.2f ms\n", round, s, target.Name, r.Rate, r.P50, r.P99)
				if err := json.NewEncoder(p.records).Encode(r); err != nil {
					return results, fmt.Errorf("write result: %w", err)
				}
			}
		}
	}
	return results, nil
}

// measure runs one step on a bed of its own.
func (p *plan) measure(ctx context.Context, target harness.Target, s step) (r result, err error) {
	b, err := startBed(ctx, target, p.endpoint, p.dir)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	l := &load{step: s, bed: b}
	var o outcome
	if s.oneWay {
		err = p.warmUp(ctx, b)
		if err == nil {
			o, err = l.counted(ctx)
		}
	} else {
		o, err = l.timed(ctx, p.warmup, p.duration)
	}
	if err != nil {
		return result{}, err
	}
	if len(o.latencies) == 0 {
		return result{}, errors.New("nothing was answered while measuring; it takes a longer -duration")
	}
	note, err := l.verify(ctx, o)
	if err != nil {
		return result{}, err
	}
	r = newResult(s, o)
	r.Note = note
	return r, nil
}

// warmUp calls a handler that counts under a name of its own.
func (p *plan) warmUp(ctx context.Context, b *bed) error {
	s, err := parseStep("fanout:1/8")
	if err != nil {
		return err
	}
	_, err = (&load{step: s, bed: b}).timed(ctx, p.warmup, 0)
	return err
}
