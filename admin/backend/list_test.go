package backend

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/admin/rest"
	"platform/internal/cluster/fabric"
	"platform/internal/cluster/routing"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
)

// stored is the invocations of a partition that another node leads.
type stored struct {
	fabric.Replica
	records []*machine.Invocation
	purged  map[ids.Invocation]bool // after their places were returned
	err     error
}

func (s *stored) List(_ context.Context, q *partition.List) (out partition.Listed, err error) {
	top := listing.NewTop(q.Order, q.After, q.Limit)
	var tally listing.Tally
	var groups listing.Groups
	for _, inv := range s.records {
		if q.Filter.Match(inv, listing.Live{}) {
			top.Add(q.Order.PlaceOf(inv))
			tally.Add(&q.Filter, inv, listing.Live{})
			groups.Add(inv, listing.Live{})
		}
	}
	switch q.Kind {
	case partition.ListPlaces:
		out.Places = top.Places()
	case partition.ListCounts:
		out.Counts = tally.Result()
	case partition.ListFailures:
		out.Groups, out.Other = groups.Result()
	}
	for _, id := range q.IDs {
		for _, inv := range s.records {
			if inv.ID == id && !s.purged[id] && q.Filter.Match(inv, listing.Live{}) {
				out.Records = append(out.Records, partition.Record{Invocation: inv})
			}
		}
	}
	return out, s.err
}

func (s *stored) Records(_ context.Context, completed bool) iter.Seq2[partition.Record, error] {
	return func(yield func(partition.Record, error) bool) {
		for _, inv := range s.records {
			if (completed || inv.Status != machine.Completed) && !yield(partition.Record{Invocation: inv}, nil) {
				return
			}
		}
		if s.err != nil {
			yield(partition.Record{}, s.err)
		}
	}
}

// newStored returns a catalog of a cluster with invocations on several partitions.
func newStored(t *testing.T, level feature.Level) (*catalog, []*stored) {
	const count = 3
	partitions := make([]*stored, count)
	for i := range partitions {
		partitions[i] = &stored{purged: map[ids.Invocation]bool{}}
	}
	for n := range 90 {
		inv := &machine.Invocation{
			ID: ids.NewInvocation(ids.HashKey(fmt.Sprint(n)), [16]byte{byte(n)}), Status: machine.Completed, CreatedAt: int64(1 + n/3), ModifiedAt: int64(200 - n), CompletedAt: int64(200 - n),
			Target: machine.Target{Service: fmt.Sprint("S", n%2), Handler: "h", Key: fmt.Sprint(n), Type: target.ObjectExclusive}, Result: &journal.Result{},
		}
		switch n % 5 {
		case 0:
			inv.Result = &journal.Result{Failure: &journal.Failure{Code: 500, Message: fmt.Sprint("order ", n, " is gone")}}
		case 1:
			inv.Status, inv.Result, inv.CompletedAt = machine.Paused, nil, 0
		}
		p := partitions[machine.PartitionOf(inv.ID.PartitionKey(), count)]
		p.records = append(p.records, inv)
	}
	router := routing.New(count, fabric.DirectoryConfig{
		Remote: func(_ string, id uint32) fabric.Replica { return partitions[id] }, Unresponsive: func(string) bool { return false },
		Replicas: func(uint32) []string { return []string{"n1"} },
	})
	return &catalog{router, func() *metadata.Schemas { return nil }, func() feature.Level { return level }}, partitions
}

func (c *catalog) pages(t *testing.T, q admin.Query) (found []string) {
	t.Helper()
	for {
		page, err := c.List(t.Context(), q)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Invocations), q.Limit)
		for _, inv := range page.Invocations {
			found = append(found, inv.ID)
		}
		if page.Next == "" {
			return found
		}
		require.Len(t, page.Invocations, q.Limit)
		q.Cursor = page.Next
	}
}

// Clusters of level 3 read all records, later ones use the indexes: the results are the same.
func TestListsWithAndWithoutIndexes(t *testing.T) {
	scanned, _ := newStored(t, feature.Level3)
	indexed, _ := newStored(t, feature.Level4)
	failures, err := indexed.Failures(t.Context(), listing.Filter{}, false)
	require.NoError(t, err)
	require.Len(t, failures.Groups, 2, "one of each service")
	require.Equal(t, "order ? is gone", failures.Groups[0].Message)
	require.Equal(t, 9, failures.Groups[0].Count)
	require.Equal(t, 9, failures.Groups[0].Keys)
	group, err := listing.ParseGroup(failures.Groups[0].ID)
	require.NoError(t, err)
	for name, f := range map[string]listing.Filter{
		"all":     {},
		"failed":  {Results: []listing.Result{listing.Failure}},
		"status":  {Statuses: []listing.Status{listing.Paused}},
		"code":    {ErrorCodes: []string{"500"}, Services: []string{"S1"}},
		"time":    {Created: listing.Range{From: 5, Before: 20}, Completed: listing.Range{From: 1}},
		"key":     {Keys: []string{"17", "18"}},
		"group":   {Group: group},
		"source":  {Sources: []machine.SourceKind{machine.FromService}},
		"nothing": {Services: []string{"other"}},
	} {
		want, err := scanned.Count(t.Context(), f, false)
		require.NoError(t, err)
		got, err := indexed.Count(t.Context(), f, false)
		require.NoError(t, err)
		want.AsOf = got.AsOf
		require.Equal(t, want, got, name)
		for _, q := range []admin.Query{{}, {OldestFirst: true}, {ByModified: true}, {ByModified: true, OldestFirst: true}} {
			for _, q.Limit = range []int{1, 7, 1000} {
				q.Filter = f
				list := indexed.pages(t, q)
				require.Equal(t, scanned.pages(t, q), list, name)
				require.Len(t, list, got.Total, name)
			}
		}
		wantGroups, err := scanned.Failures(t.Context(), f, false)
		require.NoError(t, err)
		gotGroups, err := indexed.Failures(t.Context(), f, false)
		require.NoError(t, err)
		require.Equal(t, wantGroups, gotGroups, name)
	}
}

func TestPurgedInvocationsDoNotEndAPage(t *testing.T) {
	c, partitions := newStored(t, feature.Level4)
	left := 0
	for _, p := range partitions {
		for i, inv := range p.records {
			if p.purged[inv.ID] = i%3 > 0; i%3 == 0 {
				left++
			}
		}
	}
	require.Len(t, c.pages(t, admin.Query{Limit: 8}), left)
}

func TestPartialListsNameMissingPartitions(t *testing.T) {
	for _, level := range []feature.Level{feature.Level3, feature.Level4} {
		c, partitions := newStored(t, level)
		partitions[1].err = fmt.Errorf("disk on fire")
		_, err := c.List(t.Context(), admin.Query{Limit: 10})
		require.ErrorIs(t, err, admin.ErrUnavailable)
		_, err = c.Count(t.Context(), listing.Filter{}, false)
		require.ErrorIs(t, err, admin.ErrUnavailable)
		_, err = c.Failures(t.Context(), listing.Filter{}, false)
		require.ErrorIs(t, err, admin.ErrUnavailable)

		page, err := c.List(t.Context(), admin.Query{Limit: 10, Partial: true})
		require.NoError(t, err)
		require.Equal(t, []uint32{1}, page.Missing)
		require.Len(t, page.Invocations, 10)
		counts, err := c.Count(t.Context(), listing.Filter{}, true)
		require.NoError(t, err)
		require.Equal(t, []uint32{1}, counts.Missing)
		failures, err := c.Failures(t.Context(), listing.Filter{}, true)
		require.NoError(t, err)
		require.Equal(t, []uint32{1}, failures.Extent.Missing)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Count(ctx, listing.Filter{}, true)
		require.Error(t, err, "the client is gone")
	}
}

func TestCursorsBelongToAnOrder(t *testing.T) {
	c, _ := newStored(t, feature.Level4)
	page, err := c.List(t.Context(), admin.Query{Limit: 3})
	require.NoError(t, err)
	_, err = c.List(t.Context(), admin.Query{Limit: 3, Cursor: page.Next, ByModified: true})
	require.ErrorIs(t, err, rest.ErrCursor)
	for _, cursor := range []string{"x", "1.", ".", "m:1", "m:1.inv_x", "!.inv_1"} {
		for _, modified := range []bool{true, false} {
			_, err = c.List(t.Context(), admin.Query{Limit: 3, Cursor: cursor, ByModified: modified})
			require.ErrorIs(t, err, rest.ErrCursor, cursor)
		}
	}
}
