// Package cluster injects faults into clusters of real processes under load and checks
// from outside that every guarantee holds. Package load has the clients and their checks,
// package history the checkers, and faults_test.go the faults of nodes, network and disks.
//
// Network faults require network namespaces, which root can create, or any user if
// unprivileged user namespaces are enabled. Disk faults require root. Otherwise these
// faults are skipped, with a message in the output of -v, and all others run.
// The short form runs with all other tests; `make cluster-faults` and `make
// cluster-plants` run the long forms. Settings:
//
//	CLUSTER_ROUNDS     number of faults in TestMixedFaults
//	CLUSTER_FAULTS     kinds of faults, comma-separated names from faults_test.go
//	CLUSTER_SNAPSHOTS  set: TestMixedFaults uses a server with frequent snapshots
//	CLUSTER_LARGE      number of faults in TestLargeBodiesDuringFaults, of all kinds, in a cluster and again on a single node
//	CLUSTER_NODES      number of nodes (3)
//	CLUSTER_KILLS      number of leaders that TestConcurrencyLimitAcrossFailovers kills (3); set: it also
//	                   requires that released slots are reused quickly
//	CLUSTER_FAILOVERS  number of restarts in TestLongCallsSurviveFailovers (4)
//	CLUSTER_ROLLS      number of rounds of TestRollingRestarts; set: TestNormalOperationWarnsOfNothing
//	                   tolerates no warnings of delays
//	CLUSTER_UPGRADES   number of upgrades and downgrades in TestUpgrades before the final upgrade
//	CLUSTER_DRAINS     number of nodes that TestNodesWithCertificatesAreReplaced replaces (2)
//	CLUSTER_STATE_MB   size of the state in TestLongLivedWorkUnderSustainedWrites (120)
//	CLUSTER_READS      number of faults in TestReadsDuringLeaderFaults (3)
//	CLUSTER_JOB        number of invocations in TestAJobSurvivesItsLeader (2000)
//	CLUSTER_PLANTS     set: TestPlantedDefectsAreDetected runs
//	CLUSTER_BURN       seconds that TestElectionsUnderCPUSaturation takes; unset: it is skipped
//	CLUSTER_CLOCK      set: TestSteppedClocks runs in its long form
//	CLUSTER_KEEP       directory to copy the nodes' logs to
//	CLUSTER_LOG        log levels of the nodes; raft=debug shows each election
package cluster
