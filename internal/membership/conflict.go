package membership

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNameTaken says that another live node has this node's name. It comes as a
// *NameTakenError.
var ErrNameTaken = errors.New("node name is taken")

// NameTakenError names the node that has this node's name.
type NameTakenError struct {
	Other Member
}

// Error says who has the name and what to do.
func (e *NameTakenError) Error() string {
	return fmt.Sprintf("node name %q is taken by the node at %s (incarnation %s); choose another node-name, or stop that node first",
		e.Other.Name, e.Other.Address, e.Other.Incarnation)
}

// Unwrap returns ErrNameTaken.
func (e *NameTakenError) Unwrap() error { return ErrNameTaken }

const (
	// contestRecent is for how long after the last sign of another node with this
	// node's name the name is not safely this node's.
	contestRecent = 3 * time.Second
	// contestPause is the least time between two looks at such a node.
	contestPause = 250 * time.Millisecond
)

// contest collects the signs that two nodes have one name, or that two clusters have.
type contest struct {
	claims   chan Member  // at most one waits
	warnings chan warning // likewise

	// mu covers last.
	mu   sync.Mutex
	last time.Time // of a claim
}

type warning struct {
	member Member
	reason error
}

func newContest() *contest {
	return &contest{claims: make(chan Member, 1), warnings: make(chan warning, 1)}
}

// add notes that other has this node's name.
func (c *contest) add(other Member) {
	c.mu.Lock()
	c.last = time.Now()
	c.mu.Unlock()
	select {
	case c.claims <- other:
	default: // it will be seen again as long as it goes on
	}
}

// warn notes something that operators should know of another node.
func (c *contest) warn(other Member, reason error) {
	select {
	case c.warnings <- warning{other, reason}:
	default:
	}
}

// open tells whether another node claims this node's name.
func (c *contest) open() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.last.IsZero() && time.Since(c.last) < contestRecent
}

// settle finds out who keeps a name that two nodes have, until ctx ends or this node
// has to give up.
func (m *Members) settle() {
	claims := make(map[identity]claim)
	warned := make(map[string]bool)
	for {
		select {
		case other := <-m.contest.claims:
			c := claims[other.identity()].again(time.Now(), 2*m.cfg.Profile.SyncInterval)
			claims[other.identity()] = c
			if m.yields(other, c.last.Sub(c.first)) {
				m.log.Error("node name is taken", "node", other.Name, "address", other.Address, "incarnation", other.Incarnation)
				m.cfg.OnFailed(&NameTakenError{Other: other})
				return
			}
		case w := <-m.contest.warnings:
			if key := w.member.identity().String() + w.reason.Error(); !warned[key] {
				warned[key] = true
				m.log.Warn("node refused", "node", w.member.Name, "address", w.member.Address, "err", w.reason)
			}
		case <-m.ctx.Done():
			return
		}
		select {
		case <-time.After(contestPause):
		case <-m.ctx.Done():
			return
		}
	}
}

// claim is when signs of one node with this node's name came, without a longer pause.
type claim struct{ first, last time.Time }

func (c claim) again(now time.Time, pause time.Duration) claim {
	if now.Sub(c.last) > pause {
		c.first = now
	}
	c.last = now
	return c
}

// yields tells whether this node has to give its name up to other, which others have
// taken for alive for the given time. It may not be any more, so it has to answer; only
// after a long time their word alone decides. An old address of this node itself is no
// other node unless it answers.
func (m *Members) yields(other Member, lasted time.Duration) bool {
	to := peer{address: other.Address, target: other.identity()}
	self := m.Self()
	if self.outranks(other) {
		// The other may not have heard of this node. Once it has, it yields.
		if err := m.meet(to); err == nil {
			m.contest.warn(other, ErrNameTaken)
		}
		return false
	}
	conn, err := m.transport.open(to, m.cfg.Profile.StreamTimeout)
	if err == nil {
		_ = conn.Close()
		return true
	}
	m.log.Debug("node with the same name does not answer", "address", other.Address, "err", err)
	return other.Incarnation != self.Incarnation && lasted > m.cfg.Profile.NameGrace
}
