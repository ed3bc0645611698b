// Package placement decides which nodes should have replicas of which partitions, and which
// replica should lead. It computes the next steps from the current state; it is stateless
// and changes nothing itself.
//
// A step adds at most one replica to and removes at most one from a partition whose Raft
// configuration matches the partition table, so that it is one change that majorities of both the
// old and the new replicas can commit. Partitions without such a majority are left unchanged. A
// single replica gets all additional replicas in one step.
//
// The executor of a step adds the new replica as a non-voter, promotes it once it has caught
// up, and then removes the old one if a majority of the remaining replicas is alive: nodes
// may have failed since the step was decided.
//
// Read placement.go first, then repair.go, balance.go and leaders.go, in order of priority.
package placement
