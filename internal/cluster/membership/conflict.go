package membership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"platform/internal/nodetls"
)

// errNameTaken is the error for a node name that another live node uses. It is returned
// as a *NameTakenError.
var errNameTaken = errors.New("node name is taken")

// NameTakenError identifies the node that owns this node's name.
type NameTakenError struct {
	Other Member
}

// Error names the owner and the remedy.
func (e *NameTakenError) Error() string {
	return fmt.Sprintf("node name %q is taken by the node at %s (incarnation %s); choose another node-name, or stop that node first",
		e.Other.Name, e.Other.Address, e.Other.Incarnation)
}

// Unwrap returns errNameTaken.
func (e *NameTakenError) Unwrap() error { return errNameTaken }

const (
	// conflictWindow is how long after its last sighting a conflicting node still counts
	// as active.
	conflictWindow = 3 * time.Second
	// conflictCheckInterval is the minimum interval between two checks of a conflict.
	conflictCheckInterval = 250 * time.Millisecond
	// maxRemembered bounds the nodes whose conflicts are remembered.
	maxRemembered = 1000
)

// errNameNotCertified is why a node does not yield its name to another one.
var errNameNotCertified = errors.New("it uses the name of this node, and has the certificate of another one")

// conflicts collects sightings of name conflicts, between nodes or between clusters. Each
// channel buffers one item; more are dropped, because a persisting conflict is seen again.
type conflicts struct {
	sightings chan Member // other nodes with this node's name
	warnings  chan warning

	mu           sync.Mutex // covers the fields below
	lastSighting time.Time
}

// warning is a rejected node that operators should know about.
type warning struct {
	member Member
	reason error
}

func newConflicts() *conflicts {
	return &conflicts{sightings: make(chan Member, 1), warnings: make(chan warning, 1)}
}

// add records that other uses this node's name.
func (c *conflicts) add(other Member) {
	c.mu.Lock()
	c.lastSighting = time.Now()
	c.mu.Unlock()
	select {
	case c.sightings <- other:
	default:
	}
}

// warn records a node that was rejected for the given reason.
func (c *conflicts) warn(other Member, reason error) {
	select {
	case c.warnings <- warning{other, reason}:
	default:
	}
}

// active reports whether another node was recently seen using this node's name.
func (c *conflicts) active() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lastSighting.IsZero() && time.Since(c.lastSighting) < conflictWindow
}

// resolveConflicts decides which of two nodes keeps a shared name. It returns when ctx
// ends or this node must yield.
func (m *Members) resolveConflicts(ctx context.Context) {
	claims := make(map[identity]claim)
	warned := make(map[string]bool)
	for {
		select {
		case other := <-m.conflicts.sightings:
			makeRoom(claims)
			c := claims[other.identity()].extend(time.Now(), 2*m.cfg.profile.syncInterval)
			claims[other.identity()] = c
			if m.mustYield(other, c.last.Sub(c.first)) {
				m.log.Error("node name is taken", "node", other.Name, "address", other.Address, "incarnation", other.Incarnation)
				m.cfg.OnFailed(&NameTakenError{Other: other})
				return
			}
		case w := <-m.conflicts.warnings:
			if key := w.member.identity().String() + w.reason.Error(); !warned[key] {
				makeRoom(warned)
				warned[key] = true
				m.log.Warn("node rejected", "node", w.member.Name, "address", w.member.Address, "err", w.reason)
			}
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(conflictCheckInterval):
		case <-ctx.Done():
			return
		}
	}
}

// makeRoom empties a map that has maxRemembered elements: other nodes determine its keys.
func makeRoom[K comparable, V any](m map[K]V) {
	if len(m) >= maxRemembered {
		clear(m)
	}
}

// claim is an uninterrupted period in which a conflicting node was seen.
type claim struct{ first, last time.Time }

// extend adds a sighting. A gap longer than maxGap begins a new period.
func (c claim) extend(now time.Time, maxGap time.Duration) claim {
	if now.Sub(c.last) > maxGap {
		c.first = now
	}
	c.last = now
	return c
}

// mustYield reports whether this node must give up its name to other, which the cluster
// has considered alive for the given duration. That information may be stale, so other must
// answer a dial; only after nameGrace does this node yield to a node it cannot reach. A
// former address of this node itself (same incarnation) counts only if it answers.
//
// Any node can spread a claim to a name. Where nodes have certificates, the other one must therefore
// answer with that of the name.
func (m *Members) mustYield(other Member, claimed time.Duration) bool {
	to := endpoint{address: other.Address, target: other.identity()}
	self := m.selfMember()
	if self.outranks(other) {
		// The other node may not know this one yet. It yields once it does.
		if err := m.exchangeState(to); err == nil {
			m.conflicts.warn(other, errNameTaken)
		}
		return false
	}
	required := m.cfg.Security.Mode() == nodetls.Require
	conn, err := m.transport.open(to, m.cfg.profile.streamTimeout)
	if err == nil {
		node := nodetls.NodeOf(conn)
		_ = conn.Close()
		if node == self.Name || node == "" && !required {
			return true
		}
		m.conflicts.warn(other, errNameNotCertified)
		return false
	}
	m.log.Debug("node with the same name is unreachable", "address", other.Address, "err", err)
	return !required && other.Incarnation != self.Incarnation && claimed > m.cfg.profile.nameGrace
}
