// Package cli runs the published command line client of restate-server against a server: people who
// are used to it can keep it.
//
// The client is installed by make cli-deps; without it the test is skipped.
package cli
