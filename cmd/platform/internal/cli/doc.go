// Package cli is the command line program: one file per group of commands.
//
// What a command shows goes to stdout, everything said about it (questions, errors,
// footers) to stderr. The exit status is 0 when done, 1 for an error, a refusal or
// a question not answered with yes, and 2 for wrong usage.
//
// Read run.go first, then any group, such as services.go.
package cli
