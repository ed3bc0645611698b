// Package lifecycle contains what a node does at its ports besides serving: Startup responds while
// the node starts, Readiness decides whether it should receive requests, and Shutdown limits how
// long it takes to stop.
package lifecycle
