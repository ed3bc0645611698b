// Command bench benchmarks servers: it starts a server and an endpoint written with the Go
// SDK, calls handlers through the ingress with a number of workers, and prints rate,
// latency, CPU time per operation and memory.
//
// With several targets each step runs on all of them, and the order alternates between
// rounds so that noise of a shared machine affects all targets; ratio rows compare
// measurements of the same round. A wrong response or a lost or repeated execution ends
// the program with status 1, since measurements of an incorrect server are meaningless.
//
// Read step.go (workloads), rounds.go (order), testbed.go (processes) and load.go
// (measurement). README.md describes the usage.
package main
