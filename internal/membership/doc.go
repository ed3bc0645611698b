// Package membership finds the other nodes of a cluster and tells who of them is
// probably alive. It is a source of hints: what a cluster decides, it decides in its
// Raft groups, never from gossip alone.
//
// Members runs a gossip instance (hashicorp/memberlist) over the node port: UDP
// packets on the port's number, and streams that Split takes off the TCP listener
// by their first bytes, beside gRPC and HTTP/1.
//
// In the gossip a node has no IP address. It is known by an identity that stands for
// its name and the incarnation of its data directory, and the transport turns the
// identity into the node's advertised host:port, resolving the name when it is used.
// So a node may come back with another IP address, and whoever took over the address
// of a dead node is not mistaken for it.
//
// Decide and Ballot are how fresh nodes that start together agree on the one that
// provisions the cluster.
//
// Read member.go first, then members.go, join.go, conflict.go and transport.go.
package membership
