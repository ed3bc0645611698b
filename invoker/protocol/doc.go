// Package protocol reads and writes the messages that the server and service
// endpoints exchange while an attempt runs (service protocol 5 to 7).
//
// Each message is an 8-byte header, big endian (type 16 bits, flags 16, length
// 32), and a protobuf payload. Decoder cuts a byte stream into messages however it
// was split; the Append functions write what the server sends; the Parse functions
// and Check understand what endpoints send. Payloads are never copied here and
// never re-encoded.
package protocol
