// Package arrow writes tables as streams in the Apache Arrow IPC format, version 5, which clients
// of the query API may request instead of JSON. It implements the types that results have, without
// dictionaries and compression.
package arrow
