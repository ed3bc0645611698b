// Command greeter is the sample service of the quickstart: a service and a
// virtual object, written with the Go SDK. Read greeter.go and counter.go, change
// something, run it again.
//
// A service is an ordinary program with an HTTP port. The server calls it, keeps
// a journal of what each handler did, and after a failure calls it again with
// that journal, so that the handler goes on where it stopped.
package main

import (
	"context"
	"flag"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/restatedev/sdk-go/server"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9080", "address that the server calls")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	err := server.NewRestate().
		WithLogger(quiet, true).
		Bind(greeter()).
		Bind(counter()).
		Start(ctx, *listen)
	if err != nil {
		log.Fatal(err)
	}
}
