// Package load runs clients against a cluster while faults are injected, and afterwards
// checks the results that they were promised.
//
// A Run consists of workers, each of which repeats one kind of operation: additions to
// ledgers by calls, sends and other objects, reads and writes of registers, durable
// steps, critical sections, sleeps, awakeables and workflows. Each run uses new keys. A
// worker records its requests and their responses; its checker (package history)
// compares the record with the final state.
//
// There are two kinds of clients. Load-balanced clients use any node that Nodes does not
// mark faulty; each of their failed requests at such a node is a failure of the cluster.
// Pinned clients always use the same node, whose requests may fail during faults but
// must never return wrong results.
package load
