// Package ids holds the identifiers that users see and services exchange:
// invocations, deployments, awakeables. All are plain values, safe to copy and to
// use as map keys.
//
// An invocation id is 24 bytes: the partition key (8, big endian), which routes it
// to a partition, and a unique part (16). Its text form, "inv_1" and 33 base62
// characters, and the text forms of the other ids are part of the service protocol
// (identifiers).
package ids
