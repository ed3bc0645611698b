// Package identity signs requests to endpoints, so that a service can tell this
// server from anybody else who reaches its address (service protocol, request
// signing, version 1).
//
// A signature is a JSON web token of a minute's life or so, for one path and, with
// keyed targets, one key. It does not cover the body: TLS is for that.
package identity
