// Package certs reads certificates and keys from files, which may change while the server
// runs, and issues the certificates of nodes.
package certs
