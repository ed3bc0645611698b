// Package fabric is how a node asks for what the leader of a partition knows or
// decides, on whatever node that is.
//
// A Handle stands for one partition. It asks the replica on this node if that leads,
// and else the leader on another node, which it looks for: the local replica mostly
// knows who leads, a refusal names the leader, and the partition table lists who may.
// Handles come from a Directory.
//
// A Remote is a replica on another node, reached by a Client; a Server answers for
// the replicas on this one. All requests between two nodes share one stream each way,
// on which frames are sent in batches; responses come back in any order, whenever
// they are known. DESIGN.md has figures and reasons.
//
// An error says as precisely as a local one what became of a proposal: it is definite
// (nothing was proposed, see raftgroup.Definite) or raftgroup.ErrUnknownOutcome. Only
// whoever knows that a repetition is safe repeats after the latter; a Handle does not.
//
// Read replica.go first, then handle.go and search.go, then link.go and server.go.
package fabric
