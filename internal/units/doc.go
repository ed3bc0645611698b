// Package units parses and formats human-readable durations and byte sizes, as used in the
// configuration, the admin API and the delay of a send, and formats counts.
//
// Parsing accepts many forms (1h 30m, 90 minutes, PT90M), formatting has one compact form,
// and the formatted text parses to exactly the same value.
package units
