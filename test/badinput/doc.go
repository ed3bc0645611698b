// Package badinput tests a real server with invalid input: endpoints that violate the
// service protocol, deployments that cannot be registered, invalid requests and
// invalid configurations.
//
// Each error must be reported with the right code, must be retried by policy, and must not
// affect anything else. The endpoints are scripts in this process, which control every
// byte.
package badinput
