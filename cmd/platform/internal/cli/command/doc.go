// Package command is what the commands of the command-line client share: the global options, the
// settings and the login of an environment, the client of the server, output, and errors with hints.
//
// A command is a method of a type that embeds *App. Its body is passed to Run, or to App.Shows and
// ViewResponse if it only shows something, which then can be repeated with --watch.
package command
