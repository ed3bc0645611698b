// Package history holds what tests observe from outside while servers fail, and
// the checkers that decide whether it can have happened. Its types are also what
// the test services take and return.
package history
