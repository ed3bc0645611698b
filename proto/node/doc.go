// Package node defines the protocols between the nodes of a cluster.
package node
