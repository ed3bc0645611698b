// Package codec writes and reads log entries and the records of a partition's
// tables, in the protobuf format that proto/raftlog documents.
//
// It converts directly to and from the structs of machine and journal, because filling
// the generated types is half of their cost: see DESIGN.md of partition/store for
// measurements. Tags and varints are encoded by protowire; field numbers are constants
// in fields.go.
//
// Decoding does not copy: strings and payloads alias the input, which must not change
// afterwards and is retained as long as any of them. An unknown field is an error: a
// replica that skipped part of a command would diverge from the others.
//
// Read envelope.go first, then command.go, record.go, submessage.go and wire.go.
package codec
