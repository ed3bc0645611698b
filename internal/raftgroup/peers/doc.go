// Package peers holds the connections of a node to the other nodes, over which all its Raft
// groups send their requests: a stream for urgent requests, one for entries, and a connection for
// snapshots. It knows neither groups nor Raft's rules.
//
// The receiving side is raftgroup.Transport. Package nodelink has what these streams share with
// those of package fabric. Read pool.go first, then peer.go and stream.go.
package peers
