package main

import (
	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/encoding"

	"platform/test/sdk/contract"
)

// echoService covers inputs and outputs: JSON, bytes, none, headers.
func echoService() restate.ServiceDefinition {
	return restate.NewService("GoEcho").
		Handler("json", restate.NewServiceHandler(func(_ restate.Context, in contract.Message) (contract.Message, error) {
			return in, nil
		})).
		Handler("bytes", restate.NewServiceHandler(func(_ restate.Context, in []byte) ([]byte, error) {
			return in, nil
		}, restate.WithCodec(encoding.BinaryCodec))).
		Handler("nothing", restate.NewServiceHandler(func(restate.Context, restate.Void) (restate.Void, error) {
			return restate.Void{}, nil
		})).
		Handler("header", restate.NewServiceHandler(func(ctx restate.Context, name string) (string, error) {
			return ctx.Request().Headers.Get(name), nil
		}))
}
