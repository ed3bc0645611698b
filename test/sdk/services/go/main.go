// Command go is the test service endpoint written with the Go SDK. It listens on
// the port in PORT and reports side effects to the recorder at RECORDER.
//
// LAZY_STATE=1 announces lazy state for its objects, BIDI=0 announces
// request-response mode, HTTP11=1 lets it speak HTTP/1.1 instead of HTTP/2, VERSION
// is what Versioned tells, and with IDENTITY_KEY only requests that are signed for
// that key are accepted.
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
	object := []restate.ServiceDefinitionOption{restate.WithEnableLazyState(os.Getenv("LAZY_STATE") == "1")}
	level := slog.LevelError + 1 // failed attempts are part of the tests
	if os.Getenv("VERBOSE") != "" {
		level = slog.LevelInfo
	}
	quiet := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})

	endpoint := server.NewRestate().
		WithLogger(quiet, true).
		Bidirectional(os.Getenv("BIDI") != "0").
		Bind(echoService()).
		Bind(stepsService()).
		Bind(callerService()).
		Bind(utilsService()).
		Bind(storeObject(object...)).
		Bind(queueObject(object...)).
		Bind(awakeablesService()).
		Bind(holderObject(object...)).
		Bind(flowWorkflow(object...)).
		Bind(signalsService()).
		Bind(cancelObject(object...)).
		Bind(treeObject(object...)).
		Bind(driftObject(object...)).
		Bind(killedService()).
		Bind(pausedService()).
		Bind(versionedObject(object...)).
		Bind(interpreterObject(object...))
	if key := os.Getenv("IDENTITY_KEY"); key != "" {
		endpoint.WithIdentityV1(key)
	}
	address := net.JoinHostPort("127.0.0.1", os.Getenv("PORT"))
	if os.Getenv("HTTP11") == "1" {
		handler, err := endpoint.Handler()
		if err != nil {
			log.Fatal(err)
		}
		log.Fatal(http.ListenAndServe(address, handler))
	}
	log.Fatal(endpoint.Start(context.Background(), address))
}
