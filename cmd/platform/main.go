// Command platform runs, calls and manages durable services.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"platform/cmd/platform/internal/cli"
	"platform/cmd/platform/internal/cli/command"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	home, _ := os.UserHomeDir() // without a home directory there is no default configuration file
	return cli.Run(ctx, os.Args[1:], command.System{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Home: home,
	})
}
