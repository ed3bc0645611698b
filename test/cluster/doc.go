// Package cluster breaks clusters of real processes under load and checks from
// outside that every promise is kept: see package load for what clients do and check,
// package faults for what is done to nodes, their network and their disks.
//
// CLUSTER_ROUNDS sets how many faults TestMixedFaults goes through, CLUSTER_FAULTS
// which kinds (comma-separated names), CLUSTER_NODES how many nodes there are and
// CLUSTER_ROLLS how often TestRollingRestarts goes round. `make cluster-faults` runs
// the long form. CLUSTER_KEEP names a directory that gets the nodes' logs.
package cluster
