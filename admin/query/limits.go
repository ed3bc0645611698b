package query

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
)

// Limits restricts a query to the rows of some services and scopes; an empty list does not restrict.
// The empty scope is that of invocations and objects without one.
type Limits struct{ Services, Scopes []string }

func (l *Limits) any() bool { return len(l.Services) > 0 || len(l.Scopes) > 0 }

// owner is what a row belongs to.
type owner struct {
	service, scope string
	// allScopes means that the row describes the service as a whole.
	allScopes bool
}

func (l *Limits) include(o owner) bool {
	return (len(l.Services) == 0 || slices.Contains(l.Services, o.service)) &&
		(len(l.Scopes) == 0 || o.allScopes || slices.Contains(l.Scopes, o.scope))
}

// ownership determines which limits apply to the rows of a table. Queries with other limits, and all
// queries with limits of a table without ownership, are rejected: a new table
// shows nothing to limited tokens until its ownership is declared.
type ownership uint8

const (
	byOwnerService ownership = 1 << iota // rows belong to services
	byOwnerScope                         // rows belong to scopes
	ofEveryone                           // rows describe the tables, not what they contain

	byTargetOwner = byOwnerService | byOwnerScope
)

// reject returns an error if the table cannot be restricted to limits.
func (t *Table) reject(l *Limits) error {
	if !l.any() || t.ownership == ofEveryone {
		return nil
	}
	var missing []string
	if len(l.Services) > 0 && t.ownership&byOwnerService == 0 {
		missing = append(missing, "services")
	}
	if len(l.Scopes) > 0 && t.ownership&byOwnerScope == 0 {
		missing = append(missing, "scopes")
	}
	if len(missing) == 0 {
		return nil
	}
	return &Error{
		Message:   fmt.Sprintf("the table %s requires a token that is not limited to %s", t.Name, strings.Join(missing, " and ")),
		Forbidden: true,
	}
}

// narrow lets the source skip rows outside of the limits, as far as it can. It does not replace the
// check of each row.
func (s *selection) narrow(l *Limits) {
	if !l.any() {
		return
	}
	s.rows = true
	if len(s.services) == 0 {
		s.services = l.Services
	}
	if s.scope == nil && len(l.Scopes) == 1 {
		s.scope = &l.Scopes[0]
	}
}

func ownerOfTarget(t *machine.Target) owner { return owner{service: t.Service, scope: t.Scope} }

func ownerOfInvocation(r *row) owner { return ownerOfTarget(&r.Record.Target) }

func ownerOfObject(r *row) owner { return owner{service: r.Object.Service, scope: r.Object.Scope} }

// owned returns a source whose rows belong to what owner returns.
func (src source[R]) owned(by ownership, of func(*R) owner) source[R] {
	src.ownership, src.owner = by, of
	return src
}

// within removes the rows of invocations outside of the limits from pages of a journal, whose rows do
// not contain the target of their invocation. Journals and invocations are sorted by ID, so both are
// read side by side.
func within(ctx context.Context, s *session, sel *selection, pages iter.Seq2[[]partition.Row, error]) iter.Seq2[[]partition.Row, error] {
	if !s.limits.any() {
		return pages
	}
	return func(yield func([]partition.Row, error) bool) {
		heads := *sel
		heads.whole, heads.ahead, heads.rows = false, false, true
		next, stop := iter.Pull2(gather(ctx, s, scanOf(partition.Invocations, &heads, s.partitions().Scoped())))
		defer stop()
		permitted := merger{next: next, limits: &s.limits}
		for page, err := range pages {
			var inside []partition.Row
			for i := range page {
				if err != nil {
					break
				}
				var ok bool
				if ok, err = permitted.has(page[i].ID); ok {
					inside = append(inside, page[i])
				}
			}
			if !yield(inside, err) || err != nil {
				return
			}
		}
	}
}

// merger finds invocations within the limits in the order of their IDs.
type merger struct {
	next   func() ([]partition.Row, error, bool)
	limits *Limits
	page   []partition.Row
	last   ids.Invocation
	found  bool // the answer for last
}

// has reports whether an invocation exists and is within the limits. IDs must not decrease.
func (m *merger) has(id ids.Invocation) (bool, error) {
	if id == m.last {
		return m.found, nil
	}
	m.last, m.found = id, false
	for {
		for len(m.page) > 0 && bytes.Compare(m.page[0].Record.ID[:], id[:]) < 0 {
			m.page = m.page[1:]
		}
		if len(m.page) > 0 {
			first := &m.page[0]
			m.found = first.Record.ID == id && m.limits.include(ownerOfInvocation(first))
			return m.found, nil
		}
		page, err, more := m.next()
		if err != nil || !more {
			return false, err
		}
		m.page = page
	}
}
