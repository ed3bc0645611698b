// Command bench measures servers from outside: it starts a server and an endpoint
// written with the Go SDK, calls handlers through the ingress as fast as a given
// number of callers can, and prints rate, latency, CPU per operation and memory.
//
// With several targets each step runs on one after the other and the order turns
// round with every round, so that the noise of a shared machine falls on all of
// them; ratio rows compare what was measured side by side. A wrong answer, a lost
// or a repeated execution ends the program with status 1: figures of a server that
// is wrong mean nothing.
//
// Read step.go (what can be measured), rounds.go (in which order), bed.go (on
// what) and load.go (how). README.md is about using it.
package main
