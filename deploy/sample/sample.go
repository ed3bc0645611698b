// Package sample is the service that `platform dev --sample` runs: a service and a
// virtual object, written with the Go SDK. Read greeter.go and counter.go, change
// something, build and run it again.
//
// A service is an ordinary program with an HTTP port. The server calls it, keeps a journal
// of what each handler did, and after a failure calls it again with that journal, so that
// the handler continues where it stopped.
package sample

import (
	"context"
	"log/slog"
	"os"

	"github.com/restatedev/sdk-go/server"
)

// Serve serves the sample on an address, such as 127.0.0.1:9080, until ctx ends.
func Serve(ctx context.Context, address string) error {
	errorsOnly := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	return server.NewRestate().
		WithLogger(errorsOnly, true).
		Bind(greeter()).
		Bind(counter()).
		Start(ctx, address)
}
