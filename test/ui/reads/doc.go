// Command reads measures how long the reads of the web UI take: it loads invocations into a server
// and prints the latency of each route of the admin API that a page reads, through HTTP and without
// entity tags, as for a page that is opened. It fails if the first page of invocations is slow.
//
// With -data, the loaded data are kept and used by the next run, which then also measures the first
// reads after a start.
package main
