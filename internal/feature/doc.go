// Package feature defines the feature level: what may be written to logs, records and
// node-to-node requests so that every node of the cluster can read it.
//
// The cluster has one level, kept in its metadata. It is at most what every member
// supports and never falls. Nodes write new commands, fields and requests only once the
// cluster level includes them, so servers of two releases can run side by side during an
// upgrade. How the level rises is described in metadata/DESIGN.md, how it is used in
// partition/machine/DESIGN.md.
//
// This package imports nothing of the server, so every layer may use it.
package feature
