// Package sizes runs real servers, limited to 1 GiB of memory, with messages of up to
// 32 MiB: one result that many wait for, many messages for one receiver, receivers
// without a leader. Nothing may be lost, given twice or retried indefinitely, and no
// process may need more memory than it has.
//
// The short form has one node and runs with all tests. SIZES_LONG=1 (`make sizes`) has
// three, kills them in between and sends more. SIZES_WAITERS is how many handlers wait
// for a result, a promise or a signal of 1 MiB on one node: 100, or 1,000 in the long form.
package sizes
