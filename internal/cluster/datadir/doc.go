// Package datadir manages the data directory of a node: its lock, format, owner and databases.
// A directory that is incomplete or belongs to another node is rejected with a remedy, or the
// damaged part is set aside.
//
// Read dir.go first, then mark.go, identity.go, owner.go and stores.go.
package datadir
