// Package errcode is the catalogue of the error codes that users meet, and the
// error type that carries one.
//
// A code appears in admin error bodies, in the last failure of an invocation, in
// notices of deployments and in logs. The catalogue holds an explanation of each,
// so that the server and the command line client can give it on the spot.
//
// Every code is provoked by a test; provoked_test.go says by which.
package errcode
