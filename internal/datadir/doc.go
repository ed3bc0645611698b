// Package datadir is the data directory of a node: its lock, its format, whose it is, and
// the databases in it. A directory that has lost a part, or that belongs to another node,
// is refused with what to do about it, or its part is set aside.
//
// Read dir.go first, then identity.go, owner.go and stores.go.
package datadir
