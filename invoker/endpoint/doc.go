// Package endpoint connects to service endpoints: it turns an address into streams, over
// pooled HTTP/2 connections (TLS, or cleartext with prior knowledge) or over HTTP/1.1,
// through a proxy if one is configured, and refuses addresses that cannot be endpoints.
// Cloud functions are invoked by package lambda.
//
// Read client.go first, then stream.go and pool.go.
package endpoint
