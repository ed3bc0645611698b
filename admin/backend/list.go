package backend

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/listing"
	"platform/partition/machine"
)

const (
	// listConcurrency bounds the partitions that a request reads at the same time.
	listConcurrency = 64
	// A partial response waits partialLookup for the leader of a partition, and partialTimeout
	// for its response.
	partialLookup  = 2 * time.Second
	partialTimeout = 20 * time.Second
)

// indexed reports whether all nodes answer lists from indexes.
func (c *catalog) indexed() bool { return c.level() >= feature.Level4 }

// listResponses are the responses of partitions to a list.
type listResponses struct {
	mu     sync.Mutex // covers the fields below
	listed map[uint32]partition.Listed
	extent admin.Extent
}

// query sends lists to partitions, which are those with a list in per or, if it is nil, all of
// them with the list q.
func (c *catalog) query(ctx context.Context, q partition.List, per map[uint32][]ids.Invocation, partial bool) (*listResponses, error) {
	a := &listResponses{listed: map[uint32]partition.Listed{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(listConcurrency)
	for p := range c.router.Partitions() {
		q := q
		if per != nil {
			if q.IDs = per[p.ID()]; len(q.IDs) == 0 {
				continue
			}
		}
		g.Go(func() error {
			listed, err := c.queryPartition(ctx, p, &q, partial)
			return a.add(ctx, p.ID(), listed, err, partial)
		})
	}
	err := g.Wait()
	slices.Sort(a.extent.Missing)
	return a, err
}

func (c *catalog) queryPartition(ctx context.Context, p *fabric.Handle, q *partition.List, partial bool) (partition.Listed, error) {
	if partial {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(fabric.WithLookupDeadline(ctx, time.Now().Add(partialLookup)), partialTimeout)
		defer cancel()
	}
	return p.List(ctx, q)
}

func (a *listResponses) add(ctx context.Context, id uint32, listed partition.Listed, err error, partial bool) error {
	if err != nil && (!partial || ctx.Err() != nil) {
		return unavailable(id, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.extent.Missing = append(a.extent.Missing, id)
		return nil
	}
	a.listed[id] = listed
	a.extent.CompleteFrom = max(a.extent.CompleteFrom, rest.Timestamp(listed.CompleteFrom))
	return nil
}

func unavailable(id uint32, err error) error {
	return fmt.Errorf("%w: partition %d: %w", admin.ErrUnavailable, id, routing.Explain(err))
}

// merge adds what another request of the same list did not reach.
func (a *listResponses) merge(extent *admin.Extent) {
	extent.CompleteFrom = max(extent.CompleteFrom, a.extent.CompleteFrom)
	extent.Missing = slices.Compact(slices.Sorted(slices.Values(append(extent.Missing, a.extent.Missing...))))
}

// listIndexed returns a page from the indexes of the partitions. It reads only the records of
// the page.
func (c *catalog) listIndexed(ctx context.Context, q *admin.Query, after *listing.Place) (page admin.Page, err error) {
	order := listing.Order{ByModified: q.ByModified, OldestFirst: q.OldestFirst}
	want := q.Limit + 1 // one more to detect a next page
	var last listing.Place
	for len(page.Invocations) < want {
		missing := want - len(page.Invocations)
		places, err := c.places(ctx, partition.List{Kind: partition.ListPlaces, Filter: q.Filter, Order: order, After: after, Limit: missing, Partial: q.Partial}, &page.Extent)
		if err != nil {
			return page, err
		}
		records, err := c.records(ctx, q.Filter, places, q.Partial, &page.Extent)
		if err != nil {
			return page, err
		}
		for _, p := range places {
			r, found := records[p.ID]
			if !found {
				continue
			}
			if page.Invocations = append(page.Invocations, describe(r)); len(page.Invocations) == q.Limit {
				last = p
			}
		}
		if len(places) < missing {
			break
		}
		after = &places[len(places)-1]
	}
	if len(page.Invocations) > q.Limit {
		page.Invocations, page.Next = page.Invocations[:q.Limit], cursorOf(order, last)
	}
	return page, nil
}

// places returns the first places of all partitions.
func (c *catalog) places(ctx context.Context, q partition.List, extent *admin.Extent) ([]listing.Place, error) {
	a, err := c.query(ctx, q, nil, q.Partial)
	if err != nil {
		return nil, err
	}
	a.merge(extent)
	top := listing.NewTop(q.Order, q.After, q.Limit)
	for _, listed := range a.listed {
		for _, p := range listed.Places {
			top.Add(p)
		}
	}
	return top.Places(), nil
}

// records returns the records of places that match the filter.
func (c *catalog) records(ctx context.Context, filter listing.Filter, places []listing.Place, partial bool, extent *admin.Extent) (map[ids.Invocation]partition.Record, error) {
	per := map[uint32][]ids.Invocation{}
	for _, p := range places {
		owner := machine.PartitionOf(p.ID.PartitionKey(), c.router.Count())
		per[owner] = append(per[owner], p.ID)
	}
	a, err := c.query(ctx, partition.List{Kind: partition.ListRecords, Filter: filter}, per, partial)
	if err != nil {
		return nil, err
	}
	a.merge(extent)
	records := map[ids.Invocation]partition.Record{}
	for _, listed := range a.listed {
		for _, r := range listed.Records {
			records[r.ID] = r
		}
	}
	return records, nil
}

// Count implements admin.Invocations.
func (c *catalog) Count(ctx context.Context, filter listing.Filter, partial bool) (*admin.Counts, error) {
	var tally listing.Tally
	out := &admin.Counts{ByStatus: map[admin.Status]int{}, ByResult: map[admin.Result]int{}, ByService: []admin.HandlerCounts{}, AsOf: rest.Timestamp(time.Now().UnixMilli())}
	if c.indexed() {
		a, err := c.query(ctx, partition.List{Kind: partition.ListCounts, Filter: filter, Partial: partial}, nil, partial)
		if err != nil {
			return nil, err
		}
		out.Extent = a.extent
		for _, listed := range a.listed {
			tally.Merge(listed.Counts)
		}
	} else {
		missing, err := c.each(ctx, &filter, partial, func(r partition.Record) { tally.Add(&filter, r.Invocation, partition.LiveOf(r.Attempts)) })
		if err != nil {
			return nil, err
		}
		out.Missing = missing
	}
	for s := listing.Scheduled; s <= listing.Completed; s++ {
		out.ByStatus[admin.Status(s.String())] = 0
	}
	for r := listing.Success; r <= listing.Killed; r++ {
		out.ByResult[admin.Result(r.String())] = 0
	}
	for _, count := range tally.Result() {
		h := admin.HandlerCounts{Service: count.Service, Handler: count.Handler, ByStatus: byStatus(&count.ByStatus), ByResult: map[admin.Result]int{}}
		for s, n := range h.ByStatus {
			out.ByStatus[s] += n
		}
		for r := listing.Success; r <= listing.Killed; r++ {
			if n := count.ByResult[r]; n > 0 {
				h.ByResult[admin.Result(r.String())] = n
				out.ByResult[admin.Result(r.String())] += n
			}
		}
		out.Total += count.Total()
		out.ByService = append(out.ByService, h)
	}
	return out, nil
}

func byStatus(counts *[listing.Statuses]int) map[admin.Status]int {
	out := map[admin.Status]int{}
	for s, n := range counts {
		if n > 0 {
			out[admin.Status(listing.Status(s).String())] = n
		}
	}
	return out
}

// Failures implements admin.Invocations.
func (c *catalog) Failures(ctx context.Context, filter listing.Filter, partial bool) (*admin.FailureGroups, error) {
	out := new(admin.FailureGroups)
	groups, err := c.groups(ctx, filter, partial, out)
	for i := range groups {
		out.Groups = append(out.Groups, describeGroup(&groups[i]))
	}
	return out, err
}

// FailureGroups returns the failure groups of all partitions.
func (c *catalog) FailureGroups(ctx context.Context) ([]listing.Group, error) {
	return c.groups(ctx, listing.Filter{}, false, new(admin.FailureGroups))
}

// groups returns failure groups, and stores in out how many failures belong to none and what is
// missing.
func (c *catalog) groups(ctx context.Context, filter listing.Filter, partial bool, out *admin.FailureGroups) ([]listing.Group, error) {
	var lists [][]listing.Group
	if c.indexed() {
		a, err := c.query(ctx, partition.List{Kind: partition.ListFailures, Filter: filter, Partial: partial}, nil, partial)
		if err != nil {
			return nil, err
		}
		out.Extent = a.extent
		for _, listed := range a.listed {
			lists, out.Other = append(lists, listed.Groups), out.Other+listed.Other
		}
	} else {
		var groups listing.Groups
		missing, err := c.each(ctx, &filter, partial, func(r partition.Record) { groups.Add(r.Invocation, partition.LiveOf(r.Attempts)) })
		if err != nil {
			return nil, err
		}
		out.Extent.Missing = missing
		list, other := groups.Result()
		lists, out.Other = append(lists, list), other
	}
	merged, other := listing.MergeGroups(lists...)
	out.Other += other
	return merged, nil
}

func describeGroup(g *listing.Group) admin.FailureGroup {
	return admin.FailureGroup{
		ID: g.ID.String(), Service: g.Service, Handler: g.Handler, ErrorCode: g.ErrorCode, Code: g.Code, Message: g.Message,
		Sample: g.Sample.String(), Count: g.Count, ByStatus: byStatus(&g.ByStatus), Keys: g.Keys,
		FirstSeen: rest.Timestamp(g.FirstSeen), LastSeen: rest.Timestamp(g.LastSeen), Deployments: append([]ids.Deployment{}, g.Deployments...),
	}
}

// each calls visit for the records of all partitions that match the filter, for clusters with
// nodes that do not answer lists from an index.
func (c *catalog) each(ctx context.Context, filter *listing.Filter, partial bool, visit func(partition.Record)) (missing []uint32, err error) {
	completed := len(filter.Statuses) == 0 || slices.Contains(filter.Statuses, listing.Completed)
	for p := range c.router.Partitions() {
		for r, err := range p.Records(ctx, completed) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil && partial && ctx.Err() == nil {
				missing = append(missing, p.ID())
				break
			}
			if err != nil {
				return nil, unavailable(p.ID(), err)
			}
			if filter.Match(r.Invocation, partition.LiveOf(r.Attempts)) {
				visit(r)
			}
		}
	}
	return missing, nil
}

// modifiedCursor marks cursors of lists that are sorted by the last change of status.
const modifiedCursor = "m:"

func cursorOf(o listing.Order, p listing.Place) string {
	text := strconv.FormatInt(p.At, 36) + "." + p.ID.String()
	if o.ByModified {
		return modifiedCursor + text
	}
	return text
}

// parseCursor parses the cursor of a list with the given order; nil for none.
func parseCursor(o listing.Order, cursor string) (*listing.Place, error) {
	if cursor == "" {
		return nil, nil
	}
	text, modified := strings.CutPrefix(cursor, modifiedCursor)
	at, id, found := strings.Cut(text, ".")
	millis, err := strconv.ParseInt(at, 36, 64)
	if !found || err != nil || modified != o.ByModified {
		return nil, rest.ErrCursor
	}
	p := listing.Place{At: millis}
	if p.ID, err = ids.ParseInvocation(id); err != nil {
		return nil, rest.ErrCursor
	}
	return &p, nil
}
