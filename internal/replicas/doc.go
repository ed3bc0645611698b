// Package replicas keeps the partition replicas of this node as the partition table says:
// it opens, removes and rebuilds them, changes the members of the Raft groups that the node
// leads, and hands leadership over.
//
// Read manager.go first, then reconcile.go and quarantine.go.
package replicas
