// Package wire converts between the requests and responses of hashicorp/raft and the messages that
// nodes exchange (proto/node), and checks received requests. It has no state.
//
// Fields that Raft has deprecated are derived from the header on receipt. The checks exist because
// Raft panics on requests that no member sends, which would end a process at the request of
// another one.
package wire
