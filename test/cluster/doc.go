// Package cluster breaks clusters of real processes under load and checks from
// outside that every promise is kept: see package load for what clients do and check,
// package history for the checkers, and faults_test.go for what is done to nodes,
// their network and their disks.
//
// The nodes get hosts of their own, whose network is broken, where network namespaces
// can be made: by root, or by anybody whom the system lets make user namespaces. Disks
// of their own need root. Without these the faults of the network or of disks are left
// out, by name in the output of -v, and all others run.
//
// The short form runs with all other tests; `make cluster-faults` and `make
// cluster-plants` run the long ones. Settings:
//
//	CLUSTER_ROUNDS     how many faults TestMixedFaults goes through
//	CLUSTER_FAULTS     which kinds, comma-separated names of faults_test.go
//	CLUSTER_SNAPSHOTS  set: TestMixedFaults builds a server that takes many
//	CLUSTER_NODES      how many nodes there are (3)
//	CLUSTER_KILLS      how many leaders TestALimitHoldsAndIsUsed kills (3)
//	CLUSTER_ROLLS      how often TestRollingRestarts goes round
//	CLUSTER_UPGRADES   how often TestUpgrades goes forth and back before the last time
//	CLUSTER_STATE_MB   how large TestLongLivedWorkUnderSustainedWrites makes the state (120)
//	CLUSTER_READS      how many faults TestReadsUnderSuspicion goes through (3)
//	CLUSTER_PLANTS     set: TestPlantedDefectsAreFound runs
//	CLUSTER_BURN       for how many seconds TestElectionsUnderCPUBurn burns (it does not run without)
//	CLUSTER_CLOCK      set: TestSteppedClocks builds its server
//	CLUSTER_KEEP       a directory that gets the logs of the nodes
//	CLUSTER_LOG        their log levels; raft=debug shows each election
package cluster
