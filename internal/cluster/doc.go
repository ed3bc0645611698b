// Package cluster makes a node a member of its cluster: it creates or joins one, maintains
// its record in the metadata, observes the other nodes for the controller, and sends and
// serves requests about the cluster between nodes.
//
// Read server.go and nodes.go first, then bootstrap.go and registration.go.
package cluster
