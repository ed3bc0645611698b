// Package metadata owns what the whole cluster has to agree on: nodes, the partition table,
// the schema registry of deployments, services and handlers, and the rule book of flow
// control. A separate Raft group orders the changes; every node keeps a replica in bbolt
// and reads from immutable snapshots of it.
//
// Any node accepts changes: propose.go forwards them to the leader, and entries carry a
// request ID, so that none is applied twice. The leader also runs the controller, which
// manages the group's members and the partition table; package placement plans the moves.
//
// Read registry.go and cluster.go (data types) and store.go (API) first, then command.go,
// apply.go, registry_register.go and cluster_apply.go (semantics of changes), fsm.go,
// database.go and open.go (durability), and propose.go, request.go and controller.go
// (cooperation of nodes). DESIGN.md has a map of the files, and the reasons.
package metadata
