// Package cli is the command-line client: a file for each group of commands, and a package for each
// of the larger ones, cluster and subscriptions. Package command has what they share.
//
// The result of a command goes to stdout; prompts, errors and footers go to stderr. The exit status
// is 0 for success, 1 for an error, a refusal or a prompt that was not confirmed, and 2 for wrong
// usage.
//
// Read command/app.go and run.go first, then any group, such as services.go.
package cli
