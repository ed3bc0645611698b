// Command go is the test service endpoint written with the Go SDK. It listens on
// the port in PORT and reports side effects to the recorder at RECORDER.
//
// LAZY_STATE=1 announces lazy state for its objects, BIDI=0 announces
// request-response mode.
package main

import (
	"context"
	"log"
	"log/slog"
	"net"
	"os"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/server"
)

func main() {
	object := []restate.ServiceDefinitionOption{restate.WithEnableLazyState(os.Getenv("LAZY_STATE") == "1")}
	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})

	err := server.NewRestate().
		WithLogger(quiet, true).
		Bidirectional(os.Getenv("BIDI") != "0").
		Bind(echoService()).
		Bind(stepsService()).
		Bind(callerService()).
		Bind(storeObject(object...)).
		Bind(queueObject(object...)).
		Start(context.Background(), net.JoinHostPort("127.0.0.1", os.Getenv("PORT")))
	log.Fatal(err)
}
