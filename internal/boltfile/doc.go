// Package boltfile verifies bbolt files before they are opened.
//
// bbolt has no checksums but those of its two meta pages, and panics, also in goroutines
// of its own, or faults on the memory map when a page is not what it should be. Check
// reads a file without the library and says what is wrong with it.
package boltfile
