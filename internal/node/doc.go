// Package node composes one server: it opens the data directory, the Raft groups
// and the listeners, hands each part what it needs, and takes everything down in
// order. The parts know each other only through small interfaces; how they fit
// together is written here and nowhere else.
package node
