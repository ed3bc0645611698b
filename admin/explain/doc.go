// Package explain determines why an invocation has its status, what it waits for, and what an
// operator can do about it. Its only inputs are SQL tables, read through a Reader, and the current
// time, so that results are reproducible.
//
// Times in texts are in RFC 3339 in UTC, so that clients can recognize and format them.
package explain
