// Package enroll gives the nodes of a cluster certificates that the cluster itself issues: a new
// node gets its first one for a join token, and each node renews its own. The key of the authority
// is in the metadata, encrypted.
//
// Read token.go first, then issuer.go, server.go, client.go, renewer.go and rotation.go.
package enroll
