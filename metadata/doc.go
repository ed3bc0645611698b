// Package metadata owns what the whole cluster has to agree on: nodes, the
// partition table, the schema registry of deployments, services and handlers, and the
// rule book of flow control.
// A Raft group of its own orders the changes; every node keeps a replica in bbolt
// and reads from immutable snapshots of it.
//
// Any node takes changes: propose.go has them forwarded to the node that leads, and
// entries name their request, so that none happens twice. The leader also runs the
// controller, which looks after the group's own members and the partition table;
// package placement decides what goes where.
//
// Read schema.go and cluster.go (what readers see), store.go and nodes.go (what may be
// asked) first, then command.go, apply.go, register.go and layoutchange.go (what
// changes mean), fsm.go, database.go and open.go (how they become durable), and
// propose.go, request.go and controller.go (how nodes act together). DESIGN.md says
// why.
package metadata
