// Package documents executes the commands of README.md and docs/ against a real server.
//
// A block with the info string "console test" is executed: each line that begins with "$ " is a
// command, which has to end with status 0. The lines that follow a command are its output. They
// are compared, except for ids, times of day, durations and the column widths of tables; an
// ellipsis on a line of its own stands for any number of lines, and a command without output
// lines may print anything. Invocation ids of a document are replaced by those of the test's
// server, and so are addresses.
package documents
