package backend

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
	"platform/partition/store"
)

// tablesOfObjects returns the tables whose rows describe keys. Only keys without a scope have a
// queue with a count; those with a scope share vqueues, so their waiting invocations are counted.
func tablesOfObjects(scope string) []partition.Table {
	if scope == "" {
		return []partition.Table{partition.State, partition.Locks, partition.LockQueues}
	}
	return []partition.Table{partition.State, partition.Locks, partition.Waiting}
}

// Objects implements admin.Invocations. Each partition returns the first keys of the page that it
// has: the rows of a service are sorted by key.
func (c *catalog) Objects(ctx context.Context, q admin.ObjectQuery) (page []admin.ObjectSummary, more bool, err error) {
	found := objectSet{q: &q, byKey: map[string]*admin.ObjectSummary{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(listConcurrency)
	for p := range c.router.Partitions() {
		g.Go(func() error {
			for _, table := range tablesOfObjects(q.Scope) {
				if err := found.read(ctx, p, table); err != nil {
					return unavailable(p.ID(), err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, false, err
	}
	keys := slices.Sorted(maps.Keys(found.byKey))
	more = len(keys) > q.Limit
	for _, key := range keys[:min(len(keys), q.Limit)] {
		page = append(page, *found.byKey[key])
	}
	return page, more, nil
}

// objectSet collects keys with their summaries from several partitions.
type objectSet struct {
	q *admin.ObjectQuery

	mu    sync.Mutex // covers the field below
	byKey map[string]*admin.ObjectSummary
}

// read adds the first keys of a table that belong to the page, and one more to detect a next
// page.
func (s *objectSet) read(ctx context.Context, p *fabric.Handle, table partition.Table) error {
	keys, last := 0, ""
	return eachOfObjects(ctx, p, table, s.q, func(key string, row *partition.Row) visited {
		if keys == 0 || key != last {
			keys, last = keys+1, key
		}
		waiting := s.add(table, key, row)
		switch {
		case keys > s.q.Limit:
			return stop
		case table == partition.Waiting && waiting >= admin.MaxCountedWaiting:
			return nextKey
		}
		return goOn
	})
}

// add returns how many invocations are known to wait for the key.
func (s *objectSet) add(table partition.Table, key string, row *partition.Row) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byKey[key]
	if o == nil {
		o = &admin.ObjectSummary{Service: s.q.Service, Key: key, Scope: s.q.Scope}
		s.byKey[key] = o
	}
	addToSummary(o, table, row)
	return o.Waiting
}

func addToSummary(o *admin.ObjectSummary, table partition.Table, row *partition.Row) {
	switch table {
	case partition.State:
		o.Entries++
		o.Bytes += int64(row.Size)
	case partition.Locks:
		o.Holder = row.ID.String()
	case partition.LockQueues:
		o.Waiting = row.Queue.Waiting
	case partition.Waiting:
		if o.Scope != "" {
			o.Waiting++
		}
	}
}

// visited is how a walk over the rows of keys continues after a row.
type visited int

const (
	goOn visited = iota
	nextKey
	stop
)

// eachOfObjects visits the rows of keys of a service in their order.
func eachOfObjects(ctx context.Context, p *fabric.Handle, table partition.Table, q *admin.ObjectQuery, visit func(key string, row *partition.Row) visited) error {
	s := &partition.Scan{Table: table, Detail: partition.Heads, Keys: partition.AllKeys, Scope: &q.Scope, Services: []string{q.Service}, From: placeBefore(q)}
	for {
		page, err := p.Scan(ctx, s)
		if err != nil {
			return err
		}
		next := page.Next
	rows:
		for i := range page.Rows {
			row := &page.Rows[i]
			key := row.Object.Key
			if row.Queue != nil {
				key = row.Queue.Object
			}
			if !strings.HasPrefix(key, q.Prefix) {
				return nil // keys with the prefix are consecutive
			}
			switch visit(key, row) {
			case stop:
				return nil
			case nextKey:
				next = store.AfterObject(machine.Object{Scope: q.Scope, Service: q.Service, Key: key})
				break rows
			}
		}
		if next == nil {
			return nil
		}
		s.From = next
	}
}

// Scopes implements admin.Invocations. It reads one page per scope and table.
func (c *catalog) Scopes(ctx context.Context, service string, within []string) ([]string, error) {
	var mu sync.Mutex // covers found
	found := map[string]bool{}
	within = slices.Sorted(slices.Values(within))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(listConcurrency)
	for p := range c.router.Partitions() {
		g.Go(func() error {
			for _, table := range tablesOfObjects("any") {
				err := eachScope(ctx, p, table, service, within, func(scope string) bool {
					mu.Lock()
					defer mu.Unlock()
					found[scope] = true
					return len(found) < admin.MaxScopes
				})
				if err != nil {
					return unavailable(p.ID(), err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	scopes := slices.Sorted(maps.Keys(found))
	return scopes[:min(len(scopes), admin.MaxScopes)], nil
}

// eachScope visits the scopes that have rows of a service, until visit returns false; those of within
// only, which is sorted, if it is not empty.
func eachScope(ctx context.Context, p *fabric.Handle, table partition.Table, service string, within []string, visit func(scope string) bool) error {
	s := &partition.Scan{Table: table, Detail: partition.Heads, Keys: partition.AllKeys, Services: []string{service}, From: store.AfterScope("")}
	for {
		page, err := p.Scan(ctx, s)
		if err != nil {
			return err
		}
		s.From = page.Next
		if len(page.Rows) > 0 {
			scope := page.Rows[0].Object.Scope
			at, wanted := slices.BinarySearch(within, scope)
			if wanted || len(within) == 0 {
				if !visit(scope) {
					return nil
				}
				at++
			}
			s.From = store.AfterScope(scope)
			if len(within) > 0 {
				if at >= len(within) {
					return nil
				}
				s.From = store.ObjectPlace(machine.Object{Scope: within[at], Service: service})
			}
		}
		if s.From == nil {
			return nil
		}
	}
}

// placeBefore returns where the rows of a page start.
func placeBefore(q *admin.ObjectQuery) store.Place {
	o := machine.Object{Scope: q.Scope, Service: q.Service, Key: q.Prefix}
	if q.After != nil && *q.After >= q.Prefix {
		o.Key = *q.After
		return store.AfterObject(o)
	}
	return store.ObjectPlace(o)
}

// Object implements admin.Invocations.
func (c *catalog) Object(ctx context.Context, object admin.Object) (*admin.ObjectDetail, error) {
	p := c.router.Owner(ids.NewInvocation(ids.Route(object.Scope, object.Key), [16]byte{}))
	out := &admin.ObjectDetail{ObjectSummary: admin.ObjectSummary{Service: object.Service, Key: object.Key, Scope: object.Scope}}
	tables := tablesOfObjects(object.Scope)
	if object.Scope == "" {
		tables = append(tables, partition.Waiting)
	}
	if object.Workflow {
		tables = append(tables, partition.Promises)
	}
	for _, table := range tables {
		if err := readObject(ctx, p, table, object, out); err != nil {
			return nil, unavailable(p.ID(), err)
		}
	}
	return out, nil
}

// readObject adds the rows of a table that belong to an object.
func readObject(ctx context.Context, p *fabric.Handle, table partition.Table, object admin.Object, out *admin.ObjectDetail) error {
	s := &partition.Scan{
		Table: table, Detail: partition.Whole, Keys: partition.AllKeys, Scope: &object.Scope, Services: []string{object.Service}, Objects: []string{object.Key},
		From: store.ObjectPlace(machine.Object{Scope: object.Scope, Service: object.Service, Key: object.Key}),
	}
	if table == partition.State {
		s.Detail = partition.Heads
	}
	room := admin.MaxPromiseBytes
	for {
		page, err := p.Scan(ctx, s)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			row := &page.Rows[i]
			addToSummary(&out.ObjectSummary, table, row)
			switch table {
			case partition.Locks:
				out.HeldSince = rest.Timestamp(row.Since)
			case partition.Waiting:
				if len(out.Queue) < admin.MaxObjectQueue {
					out.Queue = append(out.Queue, row.ID.String())
				}
				if len(out.Queue) == admin.MaxObjectQueue && (object.Scope == "" || out.Waiting >= admin.MaxCountedWaiting) {
					return nil
				}
			case partition.Promises:
				promise := describePromise(row, &room)
				if out.Promises = append(out.Promises, promise); len(out.Promises) == admin.MaxObjectPromises {
					return nil
				}
			}
		}
		if page.Next == nil {
			return nil
		}
		s.From = page.Next
	}
}

// describePromise converts a promise for users and subtracts the size of its value from room. A value
// larger than room is omitted.
func describePromise(row *partition.Row, room *int) admin.WorkflowPromise {
	p := admin.WorkflowPromise{Name: row.Key, Completed: row.Promise.Result != nil}
	switch r := row.Promise.Result; {
	case r == nil:
	case r.Failure != nil:
		p.Failure = r.Failure.Message
	case len(r.Value) > *room:
		p.Omitted = true
	default:
		*room -= len(r.Value)
		value := append([]byte{}, r.Value...)
		p.Value = &value
	}
	return p
}
