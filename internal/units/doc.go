// Package units reads and prints the texts in which people write durations and
// byte sizes: in the configuration, in the admin API, in the delay of a send.
//
// Reading is generous (1h 30m, 90 minutes, PT90M), printing has one compact form,
// and what is printed reads back as exactly the same value.
package units
