// Package discovery requests the manifest of an endpoint and validates it as far as possible
// without the registry.
//
// Addresses are supplied by users, so a request follows no redirects, is limited in time and
// size, and connects only to addresses that the client's guard permits. Error messages are
// for the user who registers the endpoint; they quote only names from the response.
package discovery
