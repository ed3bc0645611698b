// Package errcode is the catalogue of the error codes that users see, and the error type that
// carries them.
//
// A code appears in admin error bodies, in the last failure of an invocation, in
// notices of deployments and in logs. The catalogue explains each of them; the
// server and the command line client show these explanations.
//
// Every code is provoked by a test; provoked_test.go lists them.
package errcode
