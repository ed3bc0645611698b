// Package boltfile verifies bbolt files before they are opened.
//
// bbolt has checksums only for its two meta pages. On other damaged pages it panics,
// sometimes in goroutines of its own, or faults on the memory map. Check reads a file
// without the library and reports the damage.
package boltfile
