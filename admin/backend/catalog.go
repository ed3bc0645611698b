package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"platform/admin"
	"platform/admin/query"
	"platform/internal/ids"
	"platform/internal/routing"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
)

// catalog finds invocations on all partitions for the admin API. A listing reads every record,
// and keeps only one page in memory.
type catalog struct {
	router  *routing.Router
	schemas func() *metadata.Schemas
}

// List implements admin.Invocations.
func (c *catalog) List(ctx context.Context, q admin.Query) (admin.Page, error) {
	order := newestFirst
	if q.OldestFirst {
		order = oldestFirst
	}
	after, err := parsePlace(q.Cursor)
	if err != nil {
		return admin.Page{}, err
	}
	page := &listing{query: q, order: order, after: after}
	for p := range c.router.Partitions() {
		for r, err := range p.Records(ctx, needsCompleted(q.Statuses)) {
			if err != nil {
				return admin.Page{}, fmt.Errorf("%w: partition %d: %w", admin.ErrUnavailable, p.ID(), routing.Explain(err))
			}
			if ctx.Err() != nil {
				return admin.Page{}, context.Cause(ctx)
			}
			if r.Target.Type != target.StateUpdate {
				page.consider(r)
			}
		}
	}
	return page.result(), nil
}

// Get implements admin.Invocations.
func (c *catalog) Get(ctx context.Context, id ids.Invocation, withJournal bool) (*admin.Invocation, error) {
	p := c.router.Owner(id)
	r, entries, err := p.Inspect(ctx, id, withJournal)
	if errors.Is(err, partition.ErrNotFound) || err == nil && r.Target.Type == target.StateUpdate {
		return nil, admin.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("%w: partition %d: %w", admin.ErrUnavailable, p.ID(), routing.Explain(err))
	}
	out := describe(r)
	if withJournal {
		out.Journal = describeJournal(entries)
	}
	return out, nil
}

// InUse implements admin.Invocations.
func (c *catalog) InUse(ctx context.Context, id ids.Deployment) (count int, err error) {
	for p := range c.router.Partitions() {
		for r, err := range p.Records(ctx, false) {
			if err != nil {
				return 0, fmt.Errorf("%w: partition %d: %w", admin.ErrUnavailable, p.ID(), routing.Explain(err))
			}
			if c.needs(r) == id {
				count++
			}
		}
	}
	return count, nil
}

// needs returns the deployment that an unfinished invocation runs on or will run on: queued,
// delayed and paused invocations that are not pinned run on the latest one of their service.
func (c *catalog) needs(r partition.Record) ids.Deployment {
	if d := deploymentOf(r); d != "" {
		return d
	}
	if service := c.schemas().Services[r.Target.Service]; service != nil && r.Target.Type != target.StateUpdate {
		return service.Deployment
	}
	return ""
}

// deploymentOf returns the deployment of an unfinished invocation: the pinned one or, before the
// first step is stored, that of the open attempt.
func deploymentOf(r partition.Record) ids.Deployment {
	if r.Pin.Deployment != "" {
		return r.Pin.Deployment
	}
	if r.Attempts != nil && r.Attempts.InFlight {
		return r.Attempts.Deployment
	}
	return ""
}

func needsCompleted(statuses []admin.Status) bool {
	return len(statuses) == 0 || slices.Contains(statuses, admin.StatusCompleted)
}

// place is the position of an invocation in a listing.
type place struct {
	createdAt int64
	id        ids.Invocation
}

func oldestFirst(a, b place) int {
	return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), a.id.Compare(b.id))
}

func newestFirst(a, b place) int { return oldestFirst(b, a) }

func (p place) String() string { return strconv.FormatInt(p.createdAt, 36) + "." + p.id.String() }

// parsePlace parses a cursor; nil for none.
func parsePlace(cursor string) (*place, error) {
	if cursor == "" {
		return nil, nil
	}
	at, id, found := strings.Cut(cursor, ".")
	created, err := strconv.ParseInt(at, 36, 64)
	if !found || err != nil {
		return nil, admin.ErrCursor
	}
	p := place{createdAt: created}
	if p.id, err = ids.ParseInvocation(id); err != nil {
		return nil, admin.ErrCursor
	}
	return &p, nil
}

// listing collects one page: the first matching invocations, and one more to detect a next page.
type listing struct {
	query admin.Query
	order func(a, b place) int
	after *place
	found []partition.Record // sorted when full
}

func (l *listing) consider(r partition.Record) {
	at := place{r.CreatedAt, r.ID}
	if l.after != nil && l.order(at, *l.after) <= 0 || !matches(&l.query, r) {
		return
	}
	l.found = append(l.found, r)
	if len(l.found) >= 2*(l.query.Limit+1) {
		l.trim()
	}
}

// trim drops what is beyond the page.
func (l *listing) trim() {
	slices.SortFunc(l.found, func(a, b partition.Record) int {
		return l.order(place{a.CreatedAt, a.ID}, place{b.CreatedAt, b.ID})
	})
	if most := l.query.Limit + 1; len(l.found) > most {
		clear(l.found[most:])
		l.found = l.found[:most]
	}
}

func (l *listing) result() admin.Page {
	l.trim()
	var page admin.Page
	if len(l.found) > l.query.Limit {
		l.found = l.found[:l.query.Limit]
		last := l.found[len(l.found)-1]
		page.Next = place{last.CreatedAt, last.ID}.String()
	}
	for _, r := range l.found {
		page.Invocations = append(page.Invocations, describe(r))
	}
	return page
}

func matches(q *admin.Query, r partition.Record) bool {
	t := &r.Target
	return among(q.Statuses, admin.Status(query.StatusOf(r))) && among(q.Services, t.Service) && among(q.Handlers, t.Handler) &&
		among(q.Keys, t.Key) && among(q.Scopes, t.Scope) && among(q.Deployments, r.Pin.Deployment)
}

// among reports whether list contains v; an empty list contains everything.
func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }
