package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
	"platform/partition/listing"
)

// catalog finds invocations on all partitions for the admin API.
type catalog struct {
	router  *routing.Router
	schemas func() *metadata.Schemas
	level   func() feature.Level
}

// List implements admin.Invocations.
func (c *catalog) List(ctx context.Context, q admin.Query) (admin.Page, error) {
	order := listing.Order{ByModified: q.ByModified, OldestFirst: q.OldestFirst}
	after, err := parseCursor(order, q.Cursor)
	if err != nil {
		return admin.Page{}, err
	}
	if c.indexed() {
		return c.listIndexed(ctx, &q, after)
	}
	return c.listScanned(ctx, &q, order, after)
}

// listScanned returns a page by reading all records, of which it keeps those of the page in
// memory.
func (c *catalog) listScanned(ctx context.Context, q *admin.Query, order listing.Order, after *listing.Place) (page admin.Page, err error) {
	l := scannedList{order: order, after: after, most: q.Limit + 1} // one more to detect a next page
	if page.Missing, err = c.each(ctx, &q.Filter, q.Partial, l.add); err != nil {
		return page, err
	}
	l.trim()
	if len(l.found) > q.Limit {
		l.found = l.found[:q.Limit]
		page.Next = cursorOf(order, order.PlaceOf(l.found[q.Limit-1].Invocation))
	}
	for _, r := range l.found {
		page.Invocations = append(page.Invocations, describe(r))
	}
	return page, nil
}

// Get implements admin.Invocations.
func (c *catalog) Get(ctx context.Context, id ids.Invocation, withJournal bool) (*admin.Invocation, error) {
	p := c.router.Owner(id)
	r, _, err := p.Inspect(ctx, id, false)
	if errors.Is(err, partition.ErrNotFound) || err == nil && r.Target.Type == target.StateUpdate {
		return nil, rest.ErrNotFound
	}
	if err != nil {
		return nil, unavailable(p.ID(), err)
	}
	out := describe(r)
	if withJournal {
		if out.Journal, err = readJournal(ctx, p, id, r.Length); err != nil {
			return nil, unavailable(p.ID(), err)
		}
	}
	return out, nil
}

// readJournal describes the first entries of a journal. It reads them in pages, since a journal can be
// larger than a message between nodes, and than the memory for it.
func readJournal(ctx context.Context, p *fabric.Handle, id ids.Invocation, length uint32) ([]admin.Entry, error) {
	d := journalDescriber{entries: []admin.Entry{}, calls: map[int]uint32{}, callees: map[uint32]string{}}
	s := &partition.Scan{Table: partition.Journal, ID: id, Detail: partition.Whole, Keys: partition.AllKeys, Strong: true}
	for uint32(len(d.entries)) < length {
		page, err := p.Scan(ctx, s)
		if err != nil {
			return nil, err
		}
		for i := range page.Rows[:min(len(page.Rows), int(length)-len(d.entries))] {
			d.add(page.Rows[i].Entry)
		}
		if s.From = page.Next; s.From == nil {
			break
		}
	}
	return d.done(), nil
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

// scannedList collects the first records of a list.
type scannedList struct {
	order listing.Order
	after *listing.Place
	most  int
	found []partition.Record // sorted by trim
}

func (l *scannedList) add(r partition.Record) {
	if l.after != nil && l.order.Compare(l.order.PlaceOf(r.Invocation), *l.after) <= 0 {
		return
	}
	l.found = append(l.found, r)
	if len(l.found) >= 2*l.most {
		l.trim()
	}
}

// trim drops what is beyond the page.
func (l *scannedList) trim() {
	slices.SortFunc(l.found, func(a, b partition.Record) int {
		return l.order.Compare(l.order.PlaceOf(a.Invocation), l.order.PlaceOf(b.Invocation))
	})
	if len(l.found) > l.most {
		clear(l.found[l.most:])
		l.found = l.found[:l.most]
	}
}
