// Package feature defines the feature level: what may be written to logs, records and
// node-to-node requests such that every node of the cluster can read it.
//
// The cluster has one level, which is stored in its metadata. It never exceeds what every
// member supports and never decreases. Nodes write new commands, fields and requests only
// once the cluster level includes them, so that servers of two releases can run side by
// side during an upgrade. metadata/DESIGN.md describes how the level rises,
// partition/machine/DESIGN.md how it is used.
//
// This package imports nothing of the server, so every layer may use it.
package feature
