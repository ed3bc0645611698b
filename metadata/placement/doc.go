// Package placement decides which nodes should have replicas of which partitions,
// and which replica should lead. It looks at what is and names the next single
// steps; it keeps nothing and changes nothing itself.
//
// A step puts at most one replica in and takes at most one out of a partition whose
// Raft configuration is what the table says, so that carrying it out is one move
// that a majority of both the old and the new replicas can agree on. What cannot be
// agreed on, because too many replicas are down, is left alone. Only a lone replica
// gets all its companions at once.
//
// Who carries a step out adds the new replica without a vote, gives it the vote when
// it has caught up, and then removes the old one, if a majority of the rest is alive:
// nodes may have gone since the step was decided.
//
// Read placement.go first, then repair.go, balance.go and leaders.go, in the order
// in which they have their say.
package placement
