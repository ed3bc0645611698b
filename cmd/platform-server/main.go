// Command platform-server runs one node: ingress, admin API, partitions and
// metadata. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"platform/internal/config"
	"platform/internal/feature"
	"platform/internal/node"
	"platform/internal/telemetry"
	"platform/internal/version"
	"platform/metadata"
)

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // before the shutdown begins: a second signal ends the process immediately
		cancel()
	}()
	err := run(ctx)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(exitStatus(err))
	}
}

// exitUnsupported is the exit status of a server that does not support the cluster's
// feature level. Restarting it before an upgrade is pointless.
const exitUnsupported = 3

// exitRemoved is the exit status of a node that was removed from the cluster.
// Restarting it on the same data is pointless.
const exitRemoved = 4

func exitStatus(err error) int {
	if _, ok := errors.AsType[*feature.UnsupportedError](err); ok {
		return exitUnsupported
	}
	if errors.Is(err, metadata.ErrNodeRemoved) {
		return exitRemoved
	}
	return 1
}

func run(ctx context.Context) error {
	if len(os.Args) > 1 {
		switch args, environ := os.Args[2:], os.Environ(); os.Args[1] {
		case "health":
			return checkHealth(ctx, args, environ)
		case "inspect":
			return inspect(ctx, args, environ, os.Stdout, os.Stderr)
		case "repair":
			return repair(args, environ, os.Stdin, os.Stdout)
		case "recover":
			return recoverCluster(ctx, args, environ, os.Stdin, os.Stdout)
		}
	}
	loaded, err := config.Load(os.Args[1:], os.Environ())
	if err != nil {
		return err
	}
	switch {
	case loaded.Options.Help:
		fmt.Print(config.Usage())
		return nil
	case loaded.Options.Version:
		fmt.Printf("%s, feature level %d\n", version.Line("platform-server"), feature.Supported())
		return nil
	case loaded.Options.DumpConfig:
		for _, w := range loaded.Warnings {
			fmt.Fprintln(os.Stderr, "Warning:", w)
		}
		fmt.Print(loaded.Dump())
		return nil
	}
	log, levels, err := telemetry.NewLogger(telemetry.LogOptions{
		Format: telemetry.Format(loaded.Config.LogFormat), Filter: loaded.Config.LogFilter, DisableANSI: loaded.Config.LogDisableANSI,
	}, os.Stdout, os.Stderr)
	if err != nil {
		return err
	}
	for _, w := range loaded.Warnings {
		log.Warn("configuration", "warning", w)
	}
	return node.Run(ctx, loaded, log, levels)
}
