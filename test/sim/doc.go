// Package sim runs a whole cluster in one process, in the virtual time of testing/synctest,
// and injects faults determined by a seed. Raft groups, partitions, machines, tables,
// outboxes, timers and invokers are real; network, disks and services are simulated in
// memory.
//
// Read sim.go (one seed from start to end), net.go and rpc.go (the network), disk.go,
// node.go, service.go (the scripted services), nemesis.go and check.go. DESIGN.md
// describes what is simulated and how far a seed is reproducible.
package sim
