// Package ingress is the HTTP interface for calling handlers and asking for
// results. It finds the target in a snapshot of the registry, checks the request
// against what the handler announced, gives the invocation its id and hands it to
// the leader of the owning partition, wherever that is.
//
// Nothing here outlives a request: once Invocations has accepted one, the
// invocation goes on whether or not the client waits for it.
//
// Some decisions and their price:
//
//   - Whatever starts with /platform/ or has x-platform- in a header's name exists a
//     second time as /restate/ and x-restate-, for clients and SDKs that know only
//     that. Handlers find the path and query of their request as
//     x-platform-ingress-path and x-restate-ingress-path; both cost a few bytes per
//     journal.
//
//   - A private handler is answered 404 with the reason, like one that is not there.
//
//   - The router knows the fixed routes. What follows /call/, /send/ or nothing at
//     all is read by parseTarget, since only the registry tells a key from a handler.
//
//   - The Input entry of the journal is laid out by hand and the body read straight
//     into it, which saves most requests a copy and an allocation.
//
//   - A client that stops sending its body is answered 408, one that leaves before the
//     answer 499 (nobody reads it, except clients that only closed their half of the
//     connection and must not mistake silence for success).
//
//   - A failure whose code is below 200 is answered 500: HTTP has no such final
//     statuses. The code itself stands in the body.
//
//   - A scope is part of what ids are made of, and of the partition key: all of a scope
//     is in one partition, which admits for it. Limit keys count only within a scope.
//
//   - The routes of scopes exist without flow control too, to say how to enable it.
//
// Read invocations.go (where requests go), path.go (which path means what),
// call.go (calls and sends), lookup.go (attach and output), answer.go and
// problem.go (what goes back) and server.go (the listener).
package ingress
