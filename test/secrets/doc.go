// Package secrets plants secrets in a running server and searches everything that it writes and
// shows for them.
package secrets
