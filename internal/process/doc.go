// Package process measures what the process uses of its machine, processor time and memory, and
// adapts it to what it may use: it fits the limits of payloads into GOMEMLIMIT and those of connections into the limit of
// open files, tunes the garbage collector for large payloads, and returns unused memory to the system.
package process
