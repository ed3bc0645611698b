// Package node composes one server: it opens the data directory, the Raft groups and the listeners,
// passes each component its dependencies, and stops everything in order. The components know each
// other only through small interfaces; only this package connects them.
package node
