// Package stats counts what happens to invocations on a node, per service, and keeps the counts
// of the last hours in a ring of steps.
package stats
