package query

import (
	"context"
	"fmt"
	"iter"
	"time"

	"platform/partition"
	"platform/partition/machine"
)

// Partitions gives access to the partitions of the cluster, wherever their leaders are.
type Partitions interface {
	// Count returns the number of partitions.
	Count() uint32
	// Scan reads one page of a table of a partition; see partition.Partition.Scan.
	Scan(ctx context.Context, id uint32, s *partition.Scan) (partition.Page, error)
	// Scoped reports whether invocations and objects may have a scope.
	Scoped() bool
}

// scanned returns the source of a table that partitions provide.
func scanned(table partition.Table, identity func(*partition.Row, []byte) []byte) source[partition.Row] {
	return source[partition.Row]{
		pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]partition.Row, error] {
			return gather(ctx, s, scanOf(table, sel, s.partitions().Scoped()))
		},
		identity: identity,
		cost:     func(sel *selection) (float64, int64) { return scanCost(table, sel) },
	}
}

// scanOf converts a selection to the request to a partition.
func scanOf(table partition.Table, sel *selection, scoped bool) partition.Scan {
	scan := partition.Scan{
		Table: table, Keys: sel.keys(scoped), Scope: sel.scope,
		Services: sel.services, Objects: sel.objects, Handlers: sel.handlers, Statuses: sel.statuses,
	}
	switch {
	case sel.whole:
		scan.Detail = partition.Whole
	case sel.used != 0 || sel.rows || table != partition.Invocations:
		scan.Detail = partition.Heads
	}
	if sel.id != nil {
		scan.ID, scan.Ahead = *sel.id, sel.ahead
	}
	return scan
}

// gather yields the pages of a table, partition by partition.
func gather(ctx context.Context, s *session, scan partition.Scan) iter.Seq2[[]partition.Row, error] {
	return func(yield func([]partition.Row, error) bool) {
		count := s.partitions().Count()
		first, last := machine.PartitionOf(scan.Keys.First, count), machine.PartitionOf(scan.Keys.Last, count)
		for id := first; id <= last; id++ {
			s.stats.Partitions++
			scan.Strong = s.strong
			for scan.From = nil; ; {
				began := time.Now()
				page, err := s.partitions().Scan(ctx, id, &scan)
				if err != nil {
					yield(nil, fmt.Errorf("%w: partition %d: %w", ErrUnavailable, id, err))
					return
				}
				s.countRead(1, page.Read)
				rows := page.Rows
				if scan.Detail == partition.Counts && scan.ID.IsZero() {
					rows = blank(page.Matched)
				}
				if !yield(rows, nil) {
					return
				}
				if page.Next == nil {
					break
				}
				scan.From = page.Next
				s.rest(ctx, time.Since(began))
			}
		}
	}
}

const (
	// A query that takes longer than restAfter pauses after each page for as long as the page
	// took, at most longestRest, so that half of a processor remains for the partitions.
	restAfter   = 20 * time.Millisecond
	longestRest = 3 * time.Millisecond
)

// rest pauses after a page.
func (s *session) rest(ctx context.Context, took time.Duration) {
	if time.Since(s.began) < restAfter {
		return
	}
	t := time.NewTimer(min(took, longestRest))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// blanks are the rows of scans that need only the number of rows.
var blanks [2048]partition.Row

func blank(n int) []partition.Row {
	if n > len(blanks) {
		return make([]partition.Row, n)
	}
	return blanks[:n]
}

// Approximate sizes for SQLite's planner; only their order matters.
const (
	someRows = 1_000_000
	fewRows  = 20
)

func scanCost(table partition.Table, sel *selection) (cost float64, rows int64) {
	byPlace := table == partition.Invocations || table == partition.Journal
	switch {
	case sel.id != nil && (table == partition.Invocations || table == partition.Waiting):
		return 2, 1
	case sel.id != nil && byPlace:
		return 5, fewRows
	case byPlace && (sel.key != nil || len(sel.objects) > 0):
		return 50, fewRows
	case !byPlace && len(sel.services) > 0 && len(sel.objects) > 0:
		return 20, fewRows
	case !byPlace && len(sel.services) > 0:
		return someRows / 10, someRows / 10
	case sel.narrowed:
		return someRows * 0.9, someRows / 10
	}
	return someRows, someRows
}
