// Package membership discovers the nodes of a cluster and reports which of them are
// probably alive. Its results are hints: all decisions of a cluster are made in its Raft
// groups, never from gossip alone.
//
// Members runs gossip (hashicorp/memberlist) over the node port: UDP packets on the same
// port number, and TCP streams that Split separates from gRPC and HTTP/1 by their first
// bytes.
//
// Gossip addresses a node by an identity, a hash of its name and the incarnation of its
// data directory, instead of an IP address. The transport maps the identity to the
// advertised host:port and resolves the host name at each use. A node may therefore
// return with a different IP address, and a node that reuses the address of a dead one is
// not mistaken for it.
//
// Decide and Ballot let fresh nodes that start together elect the one that provisions
// the cluster.
//
// Read member.go first, then members.go, join.go, conflict.go and transport.go.
package membership
