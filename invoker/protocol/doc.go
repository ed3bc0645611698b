// Package protocol reads and writes the messages that the server and service
// endpoints exchange while an attempt runs (service protocol 5 to 7).
//
// Each message consists of an 8-byte big-endian header (type 16 bits, flags 16, length 32)
// and a protobuf payload. Decoder splits a byte stream into messages; the Append functions
// encode messages of the server; the Parse functions and Check decode messages of endpoints.
// Payloads are neither copied nor re-encoded.
package protocol
