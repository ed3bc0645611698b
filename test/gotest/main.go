// Gotest runs "go test" with the given arguments and prints one line per package, like it. It prints
// the output of a package's failed tests when the package ends, and omits that of other tests. Its
// last lines name every failed test with the lines that say why, so that the end of a long log is
// enough to find a failure. The exit status is that of "go test". $GO is the go command, if set.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func run(args []string) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	goCommand := os.Getenv("GO")
	if goCommand == "" {
		goCommand = "go"
	}
	cmd := exec.CommandContext(ctx, goCommand, append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	failures, readErr := report(events, os.Stdout)
	err = cmd.Wait()
	summarize(failures, os.Stdout)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), readErr
	}
	return 0, errors.Join(err, readErr)
}
