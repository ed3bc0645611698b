package backend

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"platform/admin"
	"platform/internal/fabric"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/machine"
	"platform/partition/store"
)

// Objects implements admin.Invocations. Each partition returns the first keys of the page that it
// has: the rows of a service are sorted by key.
func (c *catalog) Objects(ctx context.Context, q admin.ObjectQuery) (page []admin.ObjectSummary, more bool, err error) {
	found := objectSet{q: &q, byKey: map[string]*admin.ObjectSummary{}}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(listConcurrency)
	for p := range c.router.Partitions() {
		g.Go(func() error {
			for _, table := range []partition.Table{partition.State, partition.Locks, partition.LockQueues} {
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

	mu    sync.Mutex // protects the field below
	byKey map[string]*admin.ObjectSummary
}

// read adds the first keys of a table that belong to the page, and one more to detect a next
// page.
func (s *objectSet) read(ctx context.Context, p *fabric.Handle, table partition.Table) error {
	keys, last := 0, ""
	return eachOfObjects(ctx, p, table, s.q, func(key string, row *partition.Row) bool {
		if keys == 0 || key != last {
			keys, last = keys+1, key
		}
		s.add(table, key, row)
		return keys <= s.q.Limit
	})
}

func (s *objectSet) add(table partition.Table, key string, row *partition.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.byKey[key]
	if o == nil {
		o = &admin.ObjectSummary{Service: s.q.Service, Key: key, Scope: s.q.Scope}
		s.byKey[key] = o
	}
	addToSummary(o, table, row)
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
	}
}

// eachOfObjects visits the rows of keys of a service in their order, until visit returns false.
func eachOfObjects(ctx context.Context, p *fabric.Handle, table partition.Table, q *admin.ObjectQuery, visit func(key string, row *partition.Row) bool) error {
	if table == partition.LockQueues && q.Scope != "" {
		return nil // they have vqueues
	}
	s := &partition.Scan{Table: table, Detail: partition.Heads, Keys: partition.AllKeys, Scope: &q.Scope, Services: []string{q.Service}, From: placeBefore(q)}
	for {
		page, err := p.Scan(ctx, s)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			row := &page.Rows[i]
			key := row.Object.Key
			if row.Queue != nil {
				key = row.Queue.Object
			}
			if !strings.HasPrefix(key, q.Prefix) {
				return nil // keys with the prefix are consecutive
			}
			if !visit(key, row) {
				return nil
			}
		}
		if page.Next == nil {
			return nil
		}
		s.From = page.Next
	}
}

// placeBefore returns where the rows of a page start.
func placeBefore(q *admin.ObjectQuery) store.Place {
	o := machine.Object{Scope: q.Scope, Service: q.Service, Key: q.Prefix}
	if q.After != "" && q.After >= q.Prefix {
		o.Key = q.After
		return store.AfterObject(o)
	}
	return store.ObjectPlace(o)
}

// Object implements admin.Invocations.
func (c *catalog) Object(ctx context.Context, object admin.Object) (*admin.ObjectDetail, error) {
	p := c.router.Owner(ids.NewInvocation(ids.Route(object.Scope, object.Key), [16]byte{}))
	out := &admin.ObjectDetail{ObjectSummary: admin.ObjectSummary{Service: object.Service, Key: object.Key, Scope: object.Scope}}
	tables := []partition.Table{partition.State, partition.Locks, partition.LockQueues, partition.Waiting}
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
	if table == partition.LockQueues && object.Scope != "" {
		return nil
	}
	s := &partition.Scan{
		Table: table, Detail: partition.Whole, Keys: partition.AllKeys, Scope: &object.Scope, Services: []string{object.Service}, Objects: []string{object.Key},
		From: store.ObjectPlace(machine.Object{Scope: object.Scope, Service: object.Service, Key: object.Key}),
	}
	if table == partition.State {
		s.Detail = partition.Heads
	}
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
				out.HeldSince = admin.Timestamp(row.Since)
			case partition.Waiting:
				if out.Queue = append(out.Queue, row.ID.String()); len(out.Queue) == admin.MaxObjectQueue {
					return nil
				}
			case partition.Promises:
				if out.Promises = append(out.Promises, describePromise(row)); len(out.Promises) == admin.MaxObjectPromises {
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

func describePromise(row *partition.Row) admin.WorkflowPromise {
	p := admin.WorkflowPromise{Name: row.Key, Completed: row.Promise.Result != nil}
	switch r := row.Promise.Result; {
	case r == nil:
	case r.Failure != nil:
		p.Failure = r.Failure.Message
	default:
		value := append([]byte{}, r.Value...)
		p.Value = &value
	}
	return p
}
