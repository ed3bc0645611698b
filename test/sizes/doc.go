// Package sizes runs real servers, limited to 1 GiB of memory, with messages of up to
// 32 MiB: one result that many wait for, many messages for one receiver, receivers
// without a leader. Nothing may be lost, given twice or retried indefinitely, and no
// process may need more memory than it has.
//
// The short form has one node and runs with all tests. SIZES_LONG=1 (`make sizes`) has
// three, kills them in between and sends more.
package sizes
