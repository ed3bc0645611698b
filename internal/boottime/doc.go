// Package boottime measures elapsed time including system suspension.
//
// Go's monotonic clock, and with it time.Since and all timers, stops during suspension. A
// Stopwatch includes that time. It has no timer: code that waits for a deadline must poll
// the stopwatch.
package boottime
