// Package cluster has the commands below `platform cluster`: nodes, partitions, configuration,
// certificates, join tokens, secrets and log levels.
package cluster
