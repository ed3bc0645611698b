// Package identity signs requests to endpoints, so that a service can authenticate this
// server (service protocol, request signing, version 1).
//
// A signature is a JSON Web Token valid for about a minute, for one path and, with keyed
// targets, one key. It does not cover the body, which TLS protects.
package identity
