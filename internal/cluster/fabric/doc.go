// Package fabric routes requests to the leader of a partition, on whichever node it is.
//
// A Handle represents one partition. It uses the replica on this node if that leads;
// otherwise it looks up the leader on another node: the local replica usually knows it, a
// node that rejects a request returns a hint, and the partition table lists the
// candidates. Handles are obtained from a Directory.
//
// A Remote is a replica on another node, reached through a Client; a Server serves
// requests for the replicas on this node. All requests between two nodes share one stream
// in each direction, on which frames are sent in batches; responses are returned in any
// order. See DESIGN.md for measurements and design decisions.
//
// Errors describe the outcome of a proposal as precisely as those of a local replica: the
// error is definite (nothing was proposed, see raftgroup.Definite) or
// raftgroup.ErrUnknownOutcome. A Handle never retries after the latter; only a caller that
// knows that a retry is safe may do so.
//
// Read replica.go first, then handle.go and lookup.go, then link.go and server.go.
package fabric
