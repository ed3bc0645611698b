package retention

import (
	"log/slog"
	"time"

	"github.com/hashicorp/raft"
)

// Config configures a Policy.
type Config struct {
	// TrailingEntries and TrailingBytes bound what stays behind a snapshot for followers that
	// were down. Raft itself only counts entries, which may be large.
	TrailingEntries uint64
	TrailingBytes   int64
	// Alone reports whether the group has no other members, which would need trailing entries.
	Alone func() bool
	// Match returns the index up to which a follower's log is known to match that of this
	// replica, 0 if this replica does not lead in term.
	Match func(follower raft.ServerID, term uint64) uint64
	// Budget is shared by the groups of a node.
	Budget *Budget
	// OnHeld is called with the bytes that holds of the node retain, OnDropped with the reason
	// why a hold was dropped before its follower had caught up. They must not block.
	OnHeld    func(bytes int64)
	OnDropped func(Reason)
	Logger    *slog.Logger
	Now       func() time.Time
}

// MinTrailing is how many entries stay in any case: the last one has the log's term.
const MinTrailing = 1

// Policy decides how much of the log of one group may be removed. A nil Policy retains nothing.
type Policy struct {
	cfg   Config
	sizes sizes
	holds holds
}

// NewPolicy returns the policy of a group that was just opened.
func NewPolicy(cfg Config) *Policy { return &Policy{cfg: cfg} }

// Started records the entries from first to last, which were stored before the group was opened. Their sizes are unknown.
// They count as TrailingBytes: counted as nothing, they would remain until as much has been stored after the start, and a
// node that is restarted earlier would never remove any.
func (p *Policy) Started(first, last uint64) {
	if first > 0 && first <= last {
		p.sizes.assume(first, last, p.cfg.TrailingBytes)
	}
}

// Stored records entries that were added to the log.
func (p *Policy) Stored(logs []*raft.Log) {
	if p != nil {
		p.sizes.add(logs)
	}
}

// Compactable returns the index up to which the log, which ends at last, may be removed if upTo is
// requested.
func (p *Policy) Compactable(upTo, last uint64) uint64 {
	if p == nil {
		return upTo
	}
	return p.unheld(min(upTo, p.trailing(upTo, last)))
}

// trailing returns the index up to which followers that were down do not need the log.
func (p *Policy) trailing(upTo, last uint64) uint64 {
	if p.cfg.Alone() {
		return upTo
	}
	return max(last-min(last, p.cfg.TrailingEntries), p.sizes.before(p.cfg.TrailingBytes))
}
