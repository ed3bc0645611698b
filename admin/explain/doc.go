// Package explain determines why an invocation is in its status, what it waits for, and what an
// operator can do about it. It reads SQL tables through a Reader and has no other input, so that
// its results follow from the rows and the time alone.
//
// Times in texts are in RFC 3339, in UTC, so that clients can format them.
package explain
