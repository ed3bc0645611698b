// Package sim runs a whole cluster in one process, in the virtual time of testing/synctest,
// and injects faults determined by a seed. Raft groups, partitions, machines, tables,
// outboxes, timers and invokers are real; network, disks and services are simulated in
// memory. Replicas move between nodes, and nodes are upgraded, meanwhile.
//
// A seed runs in its own process, whose sources of randomness are derived from the seed.
// Three of four repetitions have the same trace down to each message; on a busy machine
// the others differ somewhere. Repeat a failing seed that passes, with -repeats.
//
// Read sim.go (one seed from start to end), net.go and rpc.go (the network), disk.go,
// node.go, service.go (the scripted services), nemesis.go and check.go. DESIGN.md
// describes what is simulated and how far a seed is reproducible.
package sim
