// Package node holds the protobuf messages and services that the nodes of one
// cluster use to talk to each other.
package node
