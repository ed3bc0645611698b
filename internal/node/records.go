package node

import (
	"context"
	"fmt"
	"iter"

	"platform/admin"
	"platform/admin/query"
	"platform/internal/fabric"
	"platform/partition"
	"platform/partition/machine"
)

// unfinished are the statuses of invocations without a result.
var unfinished = []machine.Status{machine.Scheduled, machine.Inboxed, machine.Invoked, machine.Suspended, machine.Paused}

// records yields those of a partition's invocations that s selects, in the order of
// their ids. It holds one page at a time, and each may come from another leader:
// whichever invocation is there all the while is met exactly once. After an error
// nothing follows.
func records(ctx context.Context, p *fabric.Handle, s partition.Scan) iter.Seq2[partition.Record, error] {
	s.Table, s.Detail, s.Keys = partition.Invocations, partition.Whole, partition.AllKeys
	return func(yield func(partition.Record, error) bool) {
		for s := s; ; {
			asked := s // a replica may keep what it was handed
			page, err := p.Scan(ctx, &asked)
			if err != nil {
				yield(partition.Record{}, unread(ctx, p, err))
				return
			}
			for i := range page.Rows {
				if !yield(page.Rows[i].Record, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			s.From = page.Next
		}
	}
}

// unread says why a partition could not be read, to whoever asked the admin API.
func unread(ctx context.Context, p *fabric.Handle, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: partition %d: %w", admin.ErrUnavailable, p.ID(), inWords(err))
}

// scanFor is what leaders can tell apart of what a listing asks for. The rest is left
// to matches.
func scanFor(q *admin.Query) partition.Scan {
	s := partition.Scan{Services: q.Services, Objects: q.Keys, Handlers: q.Handlers}
	if len(q.Scopes) == 1 {
		s.Scope = &q.Scopes[0]
	}
	for _, status := range q.Statuses {
		s.Statuses = append(s.Statuses, query.StoredAs(string(status)))
	}
	return s
}
