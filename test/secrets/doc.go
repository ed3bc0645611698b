// Package secrets plants secrets in a running server and searches everything that it writes and
// shows for them, and tests that the results of one caller are not shown to another one.
package secrets
