// Package cli is the command line program: one file per group of commands.
//
// The result of a command goes to stdout; prompts, errors and footers go to stderr. The exit status
// is 0 for success, 1 for an error, a refusal or a prompt that was not confirmed, and 2 for wrong
// usage.
//
// Read run.go first, then any group, such as services.go.
package cli
