// Package documents executes the commands of README.md and docs/ against real servers.
//
// A block with the info string "console test" is executed: each line that begins with "$ " is a
// command, which has to end with status 0, or with another one if its comment begins with
// "# fails". The lines that follow a command are its output. They are compared, except for ids,
// times of day, durations and the column widths of tables; an ellipsis stands for any text, on a
// line of its own for any number of lines, and a command without output lines may print anything.
// Invocation ids and failure groups of a document are replaced by those of the test's server, and
// so are addresses.
//
// The commands of a block with the info string "console test await" show the effect of something
// that happens in the background: each is repeated until it prints the output of the document.
package documents
