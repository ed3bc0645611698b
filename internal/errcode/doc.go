// Package errcode is the catalogue of the error codes that users meet, and the
// error type that carries one.
//
// A code appears in admin error bodies, in the last failure of an invocation, in
// notices of deployments and in logs. The catalogue holds an explanation of each,
// so that the server and the command line client can give it on the spot.
//
// Every code is provoked by a test; provoked_test.go says by which. The exception is
// META0009, which cannot occur: it refuses subscriptions to event streams, and this
// server has no route that makes one. It is explained all the same, because people
// meet it in the documentation of clients.
package errcode
