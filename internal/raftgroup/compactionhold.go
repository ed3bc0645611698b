package raftgroup

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// maxHeldLogBytes is the default bound of the log that all groups of a node retain for
	// followers that are being sent a snapshot.
	maxHeldLogBytes = 1 << 30
	// holdIdleLimit is how long a follower may make no progress before its hold is dropped.
	// It is longer than the limit of package peers for a transfer, so that a stalled transfer ends first.
	holdIdleLimit = time.Minute
)

// Reasons why a hold was dropped before its follower had caught up.
const (
	holdTooLarge = "bytes"
	holdStalled  = "no_progress"
)

// compactionHolds prevents the log from being truncated past the entries that followers
// need next while they are sent a snapshot, or follow the log after one. It is bounded by
// the bytes of log retained and by the time without progress.
//
// A nil compactionHolds holds nothing.
type compactionHolds struct {
	sizes   *logSizes
	limit   int64
	shared  *atomic.Int64 // bytes held by all groups of the node
	metrics *Metrics
	log     *slog.Logger
	now     func() time.Time

	mu    sync.Mutex // covers the fields below
	holds []*compactionHold
	own   int64 // this group's part of shared
}

// compactionHold is the part of the log that one follower needs.
type compactionHold struct {
	progress atomic.Int64 // last progress of a transfer, Unix nanoseconds

	// The rest is covered by compactionHolds.mu.
	first     uint64 // the first entry to be retained: the last one that the follower has, whose term an append contains
	follower  raft.ServerID
	term      uint64
	installed bool // the follower has the snapshot and follows the log
	advanced  time.Time
}

// begin retains the log from the entry at first on, for a transfer.
func (c *compactionHolds) begin(first uint64) *compactionHold {
	if c == nil {
		return nil
	}
	h := &compactionHold{first: first}
	h.progress.Store(c.now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holds = append(c.holds, h)
	return h
}

// exported records the position of the exported state.
func (c *compactionHolds) exported(h *compactionHold, index uint64) {
	if h == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.first = index
}

// moved records progress of a transfer.
func (c *compactionHolds) moved(h *compactionHold) {
	if h != nil {
		h.progress.Store(c.now().UnixNano())
	}
}

// follow keeps the hold of a completed transfer until the follower has caught up with the
// log of the leader of term.
func (c *compactionHolds) follow(h *compactionHold, follower raft.ServerID, term uint64) {
	if h == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.follower, h.term, h.installed, h.advanced = follower, term, true, c.now()
}

// end drops the hold of a transfer, unless its follower continues with the log.
func (c *compactionHolds) end(h *compactionHold) {
	if h == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !h.installed {
		c.removeLocked(h)
	}
}

func (c *compactionHolds) removeLocked(h *compactionHold) {
	for i := range c.holds {
		if c.holds[i] == h {
			c.holds = append(c.holds[:i], c.holds[i+1:]...)
			return
		}
	}
}

// bound returns the index up to which the log may be truncated if upTo is requested: less
// while a follower needs older entries. match returns the index up to which a follower's
// log is known to match the leader's, 0 if this replica no longer leads in the term.
func (c *compactionHolds) bound(upTo uint64, match func(raft.ServerID, uint64) uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	kept := c.holds[:0]
	for _, h := range c.holds {
		if c.keepLocked(h, now, upTo, match) {
			kept = append(kept, h)
		}
	}
	clear(c.holds[len(kept):])
	c.holds = kept
	c.accountLocked(upTo)
	for c.own > 0 && c.shared.Load() > c.limit {
		c.dropLocked(c.lowestLocked(), holdTooLarge)
		c.accountLocked(upTo)
	}
	if h := c.lowestLocked(); h != nil {
		return min(upTo, max(h.first, 1)-1)
	}
	return upTo
}

// keepLocked reports whether a hold is still needed and makes progress.
func (c *compactionHolds) keepLocked(h *compactionHold, now time.Time, upTo uint64, match func(raft.ServerID, uint64) uint64) bool {
	if h.installed {
		m := match(h.follower, h.term)
		if m == 0 || m > upTo { // caught up with what is retained anyway
			return false
		}
		if m > h.first {
			h.first, h.advanced = m, now
		}
	} else {
		h.advanced = time.Unix(0, h.progress.Load())
	}
	if now.Sub(h.advanced) <= holdIdleLimit {
		return true
	}
	c.reportLocked(h, holdStalled)
	return false
}

func (c *compactionHolds) lowestLocked() (lowest *compactionHold) {
	for _, h := range c.holds {
		if lowest == nil || h.first < lowest.first {
			lowest = h
		}
	}
	return lowest
}

// accountLocked counts the bytes that would have been removed without holds.
func (c *compactionHolds) accountLocked(upTo uint64) {
	held := int64(0)
	if h := c.lowestLocked(); h != nil {
		held = c.sizes.between(h.first, upTo)
	}
	c.shared.Add(held - c.own)
	c.own = held
	c.metrics.holdLog(c.shared.Load())
}

func (c *compactionHolds) dropLocked(h *compactionHold, reason string) {
	c.reportLocked(h, reason)
	c.removeLocked(h)
}

func (c *compactionHolds) reportLocked(h *compactionHold, reason string) {
	c.metrics.droppedHold(reason)
	c.log.Warn("log no longer retained for a follower, which may need another snapshot",
		"reason", reason, "follower", string(h.follower), "raft_index", h.first, "held_bytes", c.own)
}

// clear drops all holds: the log is replaced, or the group stops.
func (c *compactionHolds) clear() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.holds)
	c.holds = nil
	c.accountLocked(0)
}

// logSizes estimates how many bytes the recent part of a log has. It records entries in
// steps of sizeStep from the opening of the group on.
type logSizes struct {
	mu    sync.Mutex // covers the fields below
	total int64
	marks []sizeMark // ascending by index
}

// sizeMark means that all entries up to index, since the group was opened, have total bytes.
type sizeMark struct {
	index uint64
	total int64
}

const (
	sizeStep = 1 << 20
	maxMarks = 4096 // above this number every other one is removed
)

// add records stored entries.
func (s *logSizes) add(logs []*raft.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.marks); n > 0 && logs[0].Index <= s.marks[n-1].index {
		s.marks = s.marks[:0] // entries were replaced, as on followers
	}
	for _, l := range logs {
		s.total += int64(entryBytes(l))
	}
	if n := len(s.marks); n > 0 && s.total-s.marks[n-1].total < sizeStep {
		return
	}
	if len(s.marks) == maxMarks {
		for i := range maxMarks / 2 {
			s.marks[i] = s.marks[2*i+1]
		}
		s.marks = s.marks[:maxMarks/2]
	}
	s.marks = append(s.marks, sizeMark{logs[len(logs)-1].Index, s.total})
}

// before returns an index that at least that many bytes of entries follow, 0 if it knows none.
func (s *logSizes) before(bytes int64) (index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.marks {
		if s.total-m.total < bytes {
			break
		}
		index = m.index
	}
	return index
}

// between returns approximately how many bytes the entries from lo to hi have.
func (s *logSizes) between(lo, hi uint64) int64 {
	if lo > hi {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, s.upToLocked(hi)-s.upToLocked(lo-1))
}

// upToLocked interpolates between the marks around index.
func (s *logSizes) upToLocked(index uint64) int64 {
	var before sizeMark
	for i, m := range s.marks {
		if m.index > index {
			if i == 0 {
				return m.total - min(m.total, sizeStep)
			}
			share := float64(index-before.index) / float64(m.index-before.index)
			return before.total + int64(share*float64(m.total-before.total))
		}
		before = m
	}
	return before.total
}
