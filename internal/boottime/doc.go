// Package boottime measures time that goes on while the machine is suspended.
//
// Go's monotonic clock, and with it time.Since and all timers, stands still during
// suspension. A Stopwatch counts that time, too. It has no timer: code that waits for
// a time must read the stopwatch at intervals.
package boottime
