// Package egress decides which addresses the server connects to on behalf of users: service
// endpoints, brokers, identity providers, webhooks. A user who may register an address must not be
// able to make the server send requests to hosts that only the server can reach.
//
// Addresses are checked after name resolution, right before connecting, so that a name
// cannot resolve to another address in between.
package egress
