// Package endpoint is the way to service endpoints: it turns an address into
// streams, over pooled HTTP/2 connections (cleartext with prior knowledge, or TLS)
// or over HTTP/1.1, through a proxy where one is configured, and refuses to connect
// where no endpoint can be. Functions of clouds are invoked by package lambda.
//
// Read client.go first, then stream.go and pool.go.
package endpoint
