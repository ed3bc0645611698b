// Package metadata owns what the whole cluster has to agree on: nodes, the
// partition table, and the schema registry of deployments, services and handlers.
// A Raft group of its own orders the changes; every node keeps a replica in bbolt
// and reads from immutable snapshots of it.
package metadata
