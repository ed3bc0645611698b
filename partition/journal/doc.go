// Package journal says what a journal is: the ordered record of one invocation,
// whose entries are commands (what the handler asked for) and notifications (what
// came back). It knows the types of entries, reads and writes the few payloads the
// server has to understand, and decides when an await is over.
//
// Payloads of commands are kept byte for byte as the handler sent them, because
// services compare them on replay; nothing here re-encodes one.
//
// The package is pure: no clock, no I/O, no randomness.
package journal
