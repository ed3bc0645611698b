// Package version tells which build this is.
package version
