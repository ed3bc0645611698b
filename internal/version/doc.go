// Package version identifies the build.
package version
