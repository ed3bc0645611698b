// Package badinput holds a real server against what should not happen: endpoints
// that break the service protocol in every way, deployments that cannot be
// registered, requests and configurations that make no sense.
//
// Whatever goes wrong has to be named by the right code of the catalogue where
// people look for it, must be retried by policy, and must leave everybody else
// alone. The endpoints are scripts in this process, so that each byte is theirs.
package badinput
