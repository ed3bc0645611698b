// Package metadata owns what the whole cluster has to agree on: nodes, the
// partition table, and the schema registry of deployments, services and handlers.
// A Raft group of its own orders the changes; every node keeps a replica in bbolt
// and reads from immutable snapshots of it.
//
// Read schema.go (what readers see) and store.go (what may be asked) first, then
// command.go, apply.go and register.go (what changes mean), and fsm.go, database.go
// and open.go (how they become durable). DESIGN.md says why.
package metadata
