// Package client is the command line's client of the admin API and the ingress. It sends and
// receives JSON.
package client
