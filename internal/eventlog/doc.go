// Package eventlog keeps the latest changes of the cluster that a node has observed: nodes that
// start, stop or no longer respond, new leaders, and replicas that come, go or are damaged.
//
// Each node compares what it sees of itself and of the cluster about once per second and keeps the
// differences in memory. A change that several nodes observe is reported by each of them; Merge
// keeps one.
package eventlog
