// Package memory adapts a process to the memory that it may use: it fits the limits of payloads into
// GOMEMLIMIT, tunes the garbage collector for large payloads, and returns unused memory to the system.
package memory
