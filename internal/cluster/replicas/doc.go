// Package replicas makes the partition replicas of this node match the partition table: it
// opens, removes and rebuilds them, changes the members of the Raft groups that the node
// leads, and transfers leadership.
//
// Read reconciler.go first, then reconcile.go and quarantine.go.
package replicas
