// Package boottime measures time that goes on while the machine is suspended.
//
// Go's monotonic clock, and with it time.Since and all timers, stands still during
// suspension. A Stopwatch counts that time, too. It does not wake anybody: whoever waits
// for a time must look at the stopwatch now and then.
package boottime
