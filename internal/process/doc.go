// Package process measures what the process uses of its machine, processor time and memory, and
// adapts it to the memory that it may use: it fits the limits of payloads into GOMEMLIMIT, tunes the
// garbage collector for large payloads, and returns unused memory to the system.
package process
