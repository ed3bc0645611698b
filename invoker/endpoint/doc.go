// Package endpoint is the way to service endpoints: it turns an address into
// streams, over pooled HTTP/2 connections (cleartext with prior knowledge, or TLS)
// or over HTTP/1.1, and refuses to connect where no endpoint can be.
package endpoint
