// Package nodetls authenticates the nodes of a cluster to each other: every connection
// between nodes is TLS with certificates on both sides, issued by the authority of the
// cluster. The certificate contains the name of its node, which must be the one that the node
// uses in its messages.
package nodetls
