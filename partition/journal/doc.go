// Package journal defines the journal: the ordered record of one invocation, whose entries
// are commands (requests of the handler) and notifications (results). It defines the types
// of entries, decodes and encodes the few payloads that the server has to understand, and
// decides when an await is over.
//
// Payloads of commands are kept byte for byte as the handler sent them, because services
// compare them on replay; this package never re-encodes one.
//
// The package is pure: no clock, no I/O, no randomness.
package journal
