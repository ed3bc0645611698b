// Package rest is what the handlers of the admin API share: strict decoding of bodies and query
// parameters, the form of errors and responses, and conditional requests.
//
// Handlers return an error; the server maps it to an Error, which carries the contents of the
// response. Fields that the Go type of a body does not declare are errors, so that misspelled
// options are not ignored.
package rest
