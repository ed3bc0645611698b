// Package sizes runs servers with a memory limit of 1 GiB and messages of up to 32 MiB:
// one result with many waiters, many messages to one receiver, receivers without a
// leader, a flood of bodies that exceeds the memory for bodies, and clients that read slowly. No message may be lost, duplicated or retried indefinitely, and no process may
// exceed its memory limit.
//
// The short form has one node and runs with all tests. SIZES_LONG=1 (`make sizes`) uses
// three nodes, kills them and sends more. SIZES_WAITERS is the number of handlers that wait
// for a result, promise or signal of 1 MiB on one node (100, or 1,000 in the long form).
package sizes
