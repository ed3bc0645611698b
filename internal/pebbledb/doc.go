// Package pebbledb contains what the Pebble databases of a node have in common, the log and the
// tables of the partitions: values in separate blob files, which are verified where Pebble would
// panic, reports of damaged files and the removal of what they contain, pacing of large writes,
// reclaiming of the space of deleted rows, a count of what is written, the size of manifests, and the
// adapter of the log.
package pebbledb
