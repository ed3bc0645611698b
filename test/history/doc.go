// Package history has the operations that tests observe while servers fail, and
// checkers that decide whether an observed history is correct. The test services use
// the types as inputs and results.
package history
