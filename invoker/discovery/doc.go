// Package discovery asks an endpoint which services it offers, and checks the
// answer as far as that is possible without the registry.
//
// An address may be any that a user names, so a request follows no redirects, is
// bounded in time and size, and connects only where the client's guard allows.
// Messages of errors are for the user who registers the endpoint; they never quote
// what the endpoint sent beyond names.
package discovery
