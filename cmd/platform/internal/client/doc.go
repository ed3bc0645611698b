// Package client speaks to a server for the command line: the admin API and the
// ingress, with plain JSON in both directions.
package client
