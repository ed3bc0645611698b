// Package events notifies viewers of changes. Each topic has a version. While a topic has viewers,
// a poller reads its version at intervals, and all viewers of the node share the poller. The cost
// depends on the number of viewed topics, not on the number of viewers or the traffic.
package events
