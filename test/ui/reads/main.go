package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"platform/test/harness"
)

func main() {
	log.SetFlags(0)
	var o options
	flag.IntVar(&o.invocations, "n", 1_000_000, "invocations to load")
	flag.StringVar(&o.data, "data", "", "data directory that is kept; loaded unless it has data")
	flag.BoolVar(&o.loadOnly, "load-only", false, "load -data and exit")
	flag.IntVar(&o.busy, "busy", 0, "concurrent calls during the measurement")
	flag.DurationVar(&o.duration, "duration", time.Minute, "duration of the measurement")
	flag.DurationVar(&o.limit, "limit", 300*time.Millisecond, "largest p95 of the first page of invocations")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

type options struct {
	invocations, busy int
	data              string
	loadOnly          bool
	duration, limit   time.Duration
}

// loadedFile marks a data directory that is loaded and contains the address of its endpoint.
const loadedFile = "loaded"

func run(ctx context.Context, o options) (err error) {
	dir := o.data
	if dir == "" {
		if o.loadOnly {
			return errors.New("-load-only requires -data")
		}
		if dir, err = os.MkdirTemp("", "ui-reads-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	address, err := os.ReadFile(filepath.Join(dir, loadedFile))
	loaded := err == nil
	if !loaded {
		ports, err := harness.FreePorts(1)
		if err != nil {
			return err
		}
		address = fmt.Appendf(nil, "127.0.0.1:%d", ports[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	endpoint := startEndpoint(ctx, string(address))
	defer func() {
		cancel()
		err = errors.Join(err, <-endpoint)
	}()
	server, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if !loaded {
		begin := time.Now()
		if err := fill(ctx, server, "http://"+string(address), o.invocations); err != nil {
			return fmt.Errorf("load: %w", err)
		}
		log.Printf("loaded %d invocations in %s", o.invocations, time.Since(begin).Round(time.Second))
		if err := os.WriteFile(filepath.Join(dir, loadedFile), address, 0o600); err != nil {
			return err
		}
	}
	if o.loadOnly {
		return nil
	}
	return measure(ctx, server, o)
}

func startServer(ctx context.Context, dir string) (*harness.Server, error) {
	target, err := harness.LoadTarget("platform")
	if err != nil {
		return nil, err
	}
	return harness.StartServer(ctx, target, harness.ServerOptions{Dir: dir, Env: map[string]string{
		"EXPERIMENTAL_ENABLE_PROTOCOL_V7":     "true",
		"EXPERIMENTAL_ENABLE_VQUEUES":         "true",
		"WORKER__INVOKER__INACTIVITY_TIMEOUT": "1s", // sleeping invocations suspend
	}})
}
