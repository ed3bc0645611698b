// Package ingress is the HTTP interface for calling handlers and asking for
// results. It finds the target in a snapshot of the registry, checks the request
// against what the handler announced, gives the invocation its id and hands it to
// the leader of the owning partition, wherever that is.
//
// Nothing here outlives a request: once Invocations has accepted one, the
// invocation goes on whether or not the client waits for it.
//
// Read invocations.go (where requests go), path.go (which path means what),
// call.go (calls and sends), lookup.go (attach and output), answer.go and
// problem.go (what goes back) and server.go (the listener).
package ingress
