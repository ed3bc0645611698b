package retention

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// idleLimit is how long a follower may make no progress before its hold is dropped. It is longer
// than the limit of package peers for a transfer, so that a stalled transfer ends first.
const idleLimit = time.Minute

// Reason is why a hold was dropped before its follower had caught up.
type Reason string

// The holds of the node retained too much, or the follower made no progress.
const (
	TooLarge Reason = "bytes"
	Stalled  Reason = "no_progress"
)

// Reasons lists all reasons.
var Reasons = []Reason{TooLarge, Stalled}

// Budget bounds the log that the holds of all groups of a node retain beyond the usual.
type Budget struct {
	limit int64
	held  atomic.Int64
}

// NewBudget returns a budget of limit bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Held returns the bytes that are retained.
func (b *Budget) Held() int64 { return b.held.Load() }

// holds are the holds of one group.
type holds struct {
	mu   sync.Mutex // covers the fields below and those of the holds
	all  []*Hold
	held int64 // this group's part of the budget
}

// Hold prevents the log from being truncated past the entries that a follower needs next while it
// is sent a snapshot, or follows the log after one. It is bounded by the bytes that the node
// retains and by the time without progress. The methods of a nil Hold do nothing.
type Hold struct {
	policy   *Policy
	begun    time.Time
	progress atomic.Int64 // last progress of a transfer, as the duration since begun: the system clock may step

	// The rest is covered by holds.mu.
	first     uint64 // the first entry to be retained: the last one that the follower has, whose term an append contains
	follower  raft.ServerID
	term      uint64
	installed bool // the follower has the snapshot and follows the log
	advanced  time.Time
}

// Hold retains the log from the entry at first on, for a transfer.
func (p *Policy) Hold(first uint64) *Hold {
	if p == nil {
		return nil
	}
	h := &Hold{policy: p, first: first, begun: p.cfg.Now()}
	p.holds.mu.Lock()
	defer p.holds.mu.Unlock()
	p.holds.all = append(p.holds.all, h)
	return h
}

// Exported records the position of the exported state.
func (h *Hold) Exported(index uint64) {
	if h == nil {
		return
	}
	h.policy.holds.mu.Lock()
	defer h.policy.holds.mu.Unlock()
	h.first = index
}

// Progressed records progress of the transfer.
func (h *Hold) Progressed() {
	if h != nil {
		h.progress.Store(int64(h.policy.cfg.Now().Sub(h.begun)))
	}
}

// Follow keeps the hold of a completed transfer until the follower has caught up with the log of
// the leader of term.
func (h *Hold) Follow(follower raft.ServerID, term uint64) {
	if h == nil {
		return
	}
	h.policy.holds.mu.Lock()
	defer h.policy.holds.mu.Unlock()
	h.follower, h.term, h.installed, h.advanced = follower, term, true, h.policy.cfg.Now()
}

// End drops the hold of a transfer, unless its follower continues with the log.
func (h *Hold) End() {
	if h == nil {
		return
	}
	h.policy.holds.mu.Lock()
	defer h.policy.holds.mu.Unlock()
	if !h.installed {
		h.policy.holds.removeLocked(h)
	}
}

// DropHolds drops all holds: the log is replaced, or the group stops.
func (p *Policy) DropHolds() {
	if p == nil {
		return
	}
	p.holds.mu.Lock()
	defer p.holds.mu.Unlock()
	clear(p.holds.all)
	p.holds.all = nil
	p.accountLocked(0)
}

// Holds returns how many followers the log is retained for.
func (p *Policy) Holds() int {
	p.holds.mu.Lock()
	defer p.holds.mu.Unlock()
	return len(p.holds.all)
}

// unheld returns the index up to which the log may be truncated if upTo is requested: less while
// a follower needs older entries.
func (p *Policy) unheld(upTo uint64) uint64 {
	p.holds.mu.Lock()
	defer p.holds.mu.Unlock()
	now := p.cfg.Now()
	p.holds.all = slices.DeleteFunc(p.holds.all, func(h *Hold) bool { return !p.neededLocked(h, now, upTo) })
	p.accountLocked(upTo)
	for p.holds.held > 0 && p.cfg.Budget.held.Load() > p.cfg.Budget.limit {
		h := p.holds.lowestLocked()
		p.droppedLocked(h, TooLarge)
		p.holds.removeLocked(h)
		p.accountLocked(upTo)
	}
	if h := p.holds.lowestLocked(); h != nil {
		return min(upTo, max(h.first, 1)-1)
	}
	return upTo
}

// neededLocked reports whether a hold is still needed and makes progress.
func (p *Policy) neededLocked(h *Hold, now time.Time, upTo uint64) bool {
	if h.installed {
		match := p.cfg.Match(h.follower, h.term)
		if match == 0 || match > upTo { // caught up with what is retained anyway
			return false
		}
		if match > h.first {
			h.first, h.advanced = match, now
		}
	} else {
		h.advanced = h.begun.Add(time.Duration(h.progress.Load()))
	}
	if now.Sub(h.advanced) <= idleLimit {
		return true
	}
	p.droppedLocked(h, Stalled)
	return false
}

// accountLocked counts the bytes that would have been removed without holds.
func (p *Policy) accountLocked(upTo uint64) {
	held := int64(0)
	if h := p.holds.lowestLocked(); h != nil {
		held = p.sizes.between(h.first, upTo)
	}
	total := p.cfg.Budget.held.Add(held - p.holds.held)
	p.holds.held = held
	p.cfg.OnHeld(total)
}

func (p *Policy) droppedLocked(h *Hold, reason Reason) {
	p.cfg.OnDropped(reason)
	p.cfg.Logger.Warn("log no longer retained for a follower, which may need another snapshot",
		"reason", string(reason), "follower", string(h.follower), "raft_index", h.first, "held_bytes", p.holds.held)
}

func (s *holds) lowestLocked() (lowest *Hold) {
	for _, h := range s.all {
		if lowest == nil || h.first < lowest.first {
			lowest = h
		}
	}
	return lowest
}

func (s *holds) removeLocked(h *Hold) {
	s.all = slices.DeleteFunc(s.all, func(other *Hold) bool { return other == h })
}
