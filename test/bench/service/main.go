// Command service is the endpoint under load: small handlers, written with the Go SDK,
// that count their executions. It serves invocations on PORT and the counts on
// COUNTS_PORT.
package main

import (
	"context"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
)

func main() {
	b := &handlers{counts: newCounts()}
	go func() {
		log.Fatal(http.ListenAndServe(localAddress("COUNTS_PORT"), b.counts))
	}()
	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})
	err := server.NewRestate().WithLogger(quiet, true).
		Bind(restate.NewService("Bench").
			Handler("echo", restate.NewServiceHandler(b.echo)).
			Handler("payload", restate.NewServiceHandler(b.payload, restate.WithBinary)).
			Handler("steps", restate.NewServiceHandler(b.steps)).
			Handler("fanout", restate.NewServiceHandler(b.fanout)).
			Handler("identity", restate.NewServiceHandler(b.identity)).
			Handler("sleep", restate.NewServiceHandler(b.sleep)).
			Handler("hold", restate.NewServiceHandler(b.hold))).
		Bind(restate.NewObject("Counter").
			Handler("add", restate.NewObjectHandler(b.add)).
			Handler("get", restate.NewObjectSharedHandler(b.get))).
		Start(context.Background(), localAddress("PORT"))
	log.Fatal(err)
}

func localAddress(variable string) string { return net.JoinHostPort("127.0.0.1", os.Getenv(variable)) }
