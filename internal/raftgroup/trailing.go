package raftgroup

// trailing decides how much of the log stays behind a snapshot, for followers that were
// down: Raft itself only counts entries, which may be large.
type trailing struct {
	entries uint64
	bytes   int64
	sizes   *logSizes
	// alone reports whether the group has no other members, which would need the entries.
	alone func() bool
}

// minTrailing is how many entries stay in any case: the last one has the log's term.
const minTrailing = 1

// bound returns the index up to which the log, which ends at last, may be truncated if upTo
// is requested.
func (t *trailing) bound(upTo, last uint64) uint64 {
	if t.alone() {
		return upTo
	}
	keep := last - min(last, t.entries)
	return min(upTo, max(keep, t.sizes.before(t.bytes)))
}
