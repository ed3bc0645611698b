// Package events notifies viewers of changes. A topic has a version, which a poller of the node
// reads at intervals while the topic has viewers, and which all of them share. So the cost of
// notices depends on the number of topics that are viewed, not on viewers or traffic.
package events
