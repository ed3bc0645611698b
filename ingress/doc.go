// Package ingress is the HTTP interface for calling handlers and retrieving results.
// It finds the target in a snapshot of the registry, validates the request against the
// handler's declaration, assigns the invocation an ID, and passes it to the leader of
// the owning partition, on this node or another.
//
// No state outlives a request: once Invocations has accepted an invocation, it
// continues whether or not the client waits for it.
//
// Some decisions and their cost:
//
//   - Paths below /platform/ and headers with x-platform- also exist as /restate/ and
//     x-restate-, for clients and SDKs that only know those. Handlers get the path and
//     query of their request as x-platform-ingress-path and x-restate-ingress-path;
//     this adds a few bytes to each journal.
//
//   - The response for a private handler is 400, for calls and sends; 404 means that the
//     service or the handler does not exist.
//
//   - The router knows the fixed routes. Paths after /call/ and /send/, and those without
//     a prefix, are parsed by parseTarget, since only the registry distinguishes keys
//     from handlers.
//
//   - The Input entry of the journal is encoded by hand and the body is read directly
//     into it, which saves most requests a copy and an allocation.
//
//   - The response to a client that stops sending its body is 408, and to one that
//     disconnects early 499, which only clients that closed just their half of the
//     connection receive; they must not mistake an empty response for success.
//
//   - The response to a failure with a code below 200, or with 204 or 304, has the status 500,
//     because HTTP has no such final statuses with a body. The code itself is in the body.
//
//   - The scope is part of IDs and of the partition key, so that all invocations of a
//     scope are in one partition, which admits them. Limit keys apply within a scope.
//
//   - The routes of scopes also exist without flow control, and explain how to enable it.
//
// Read invocations.go (routing), path.go (parsing of paths), call.go (calls and sends),
// lookup.go (attach and output), response.go and problem.go (responses) and server.go (the
// listener).
package ingress
