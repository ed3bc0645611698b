package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/test/harness"
)

// benchmark is the configuration of a run.
type benchmark struct {
	targets          []harness.Target
	steps            []step
	rounds           int
	duration, warmup time.Duration
	spread           time.Duration // of the sends of a step with a number of sends
	endpoint         string        // binary of the service
	dir              string        // where data goes, "" for the system's temporary directory
	progress         io.Writer     // a line for each result
	records          io.Writer     // results as JSON lines
	page             string        // file to which the page of costs is written, "" for none
	profiles         string        // directory for CPU profiles of the server, "" for none
}

// targetOrder returns the order of the targets in a round, which alternates so that no
// target always comes second.
func targetOrder[T any](targets []T, round int) []T {
	list := slices.Clone(targets)
	if round%2 == 0 {
		slices.Reverse(list)
	}
	return list
}

// run measures every step on every target in every round, each with new data. On an error
// it also returns the results so far.
func (p *benchmark) run(ctx context.Context) ([]result, error) {
	var results []result
	for round := 1; round <= p.rounds; round++ {
		for _, s := range p.steps {
			for _, target := range targetOrder(p.targets, round) {
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

// measure runs one step on a new testbed.
func (p *benchmark) measure(ctx context.Context, target harness.Target, s step) (r result, err error) {
	env := s.environment()
	if p.profiles != "" {
		env["ENABLE_PROFILES"] = "true"
	}
	b, err := startTestbed(ctx, target, p.endpoint, p.dir, env)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, b.stop()) }()
	if p.profiles != "" {
		var g errgroup.Group
		g.Go(func() error {
			return b.profile(ctx, filepath.Join(p.profiles, target.Name+"-"+s.fileName()+".pprof"), p.warmup+p.duration)
		})
		defer func() { err = errors.Join(err, g.Wait()) }()
	}
	if s.limited {
		if err := b.limit(ctx, limitedScope, s.size); err != nil {
			return result{}, err
		}
	}
	l := newLoad(s, b)
	l.spread = p.spread
	if s.waiting {
		if err := storeWaiting(ctx, b, s.size); err != nil {
			return result{}, err
		}
	}
	var o outcome
	if s.oneWay {
		err = p.warmUp(ctx, b)
		if err == nil {
			o, err = l.runCounted(ctx)
		}
	} else {
		o, err = l.runTimed(ctx, p.warmup, p.duration)
	}
	if err != nil {
		return result{}, err
	}
	note, err := l.verify(ctx, o)
	if err != nil {
		return result{}, err
	}
	r = newResult(s, o)
	r.Note = note
	if s.limited {
		rate, err := b.directRate(ctx, s.size, p.duration)
		if err != nil {
			return result{}, err
		}
		r.Direct = r.Rate / rate
	}
	return r, nil
}

// storeWaiting makes n calls that are due long after the measurement.
func storeWaiting(ctx context.Context, b *testbed, n int) error {
	const senders = 64
	s := step{workload: workload{newCalls: newDelayedSend}, name: "delayed", workers: senders}
	l := newLoad(s, b)
	l.remaining.Store(int64(n))
	g, ctx := errgroup.WithContext(ctx)
	l.startWorkers(ctx, g, func() bool { return l.remaining.Add(-1) >= 0 })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("store waiting invocations: %w", err)
	}
	return nil
}

// warmUp calls a handler with a separate counter.
func (p *benchmark) warmUp(ctx context.Context, b *testbed) error {
	s, err := parseStep("fanout:1/8")
	if err != nil {
		return err
	}
	_, err = newLoad(s, b).runTimed(ctx, p.warmup, 0)
	return err
}
