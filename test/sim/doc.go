// Package sim runs a whole cluster in one process, in the virtual time of
// testing/synctest, and breaks it as a seed says: the real Raft groups, partitions,
// machines, tables, outboxes, timers and invokers, over a network, disks and services
// in memory.
//
// Read run.go (one seed from beginning to end), net.go and rpc.go (the network),
// disk.go, node.go, service.go (the scripted services), nemesis.go and check.go.
// DESIGN.md says what is simulated, what is not, and how far a seed is reproducible.
package sim
