// Package codec writes and reads log entries and the records of a partition's
// tables, in the protobuf format that proto/raftlog documents.
//
// It goes straight from and to the structs of machine and journal, because half of
// the cost of the generated types is filling them: see DESIGN.md of partition/store
// for figures.
//
// Decoding does not copy: strings and payloads point into the input, which must not
// change afterwards and lives as long as any of them. A field that is not known is
// an error: a replica that skipped part of a command would differ from the others.
//
// Read envelope.go first, then command.go, record.go, part.go and wire.go.
package codec
