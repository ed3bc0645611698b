package fabric

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/listing"
	"platform/partition/machine"
)

func TestListRoundTrips(t *testing.T) {
	span := listing.Range{From: 3, Before: 9}
	for name, c := range map[string]struct {
		query partition.List
		out   partition.Listed
	}{
		"no conditions": {partition.List{Kind: partition.ListCounts}, partition.Listed{}},
		"all conditions": {
			partition.List{
				Kind: partition.ListPlaces, Order: listing.Order{ByModified: true, OldestFirst: true}, After: &listing.Place{At: 5, ID: invocationID(3)}, Limit: 7, Partial: true,
				Filter: listing.Filter{
					Statuses: []listing.Status{listing.Running}, Results: []listing.Result{listing.Killed}, Services: []string{"S"}, Handlers: []string{"h"},
					Keys: []string{"k\xff", ""}, Scopes: []string{""}, LimitKeys: []string{"l"}, IdempotencyKeys: []string{"i"}, ErrorCodes: []string{"500"},
					Deployments: []ids.Deployment{"dp"}, Sources: []machine.SourceKind{machine.FromService},
					Created: span, Modified: span, Completed: span, Group: listing.GroupID{1, 2},
				},
			},
			partition.Listed{Places: []listing.Place{{At: 4, ID: invocationID(1)}, {At: 2, ID: invocationID(2)}}, CompleteFrom: 99},
		},
		"records": {
			partition.List{Kind: partition.ListRecords, IDs: []ids.Invocation{invocationID(1)}},
			partition.Listed{Records: []partition.Record{sampleRecord()}},
		},
		"counts and groups": {
			partition.List{Kind: partition.ListFailures},
			partition.Listed{
				Counts: []listing.Count{{Service: "S", Handler: "h", ByStatus: [listing.Statuses]int{listing.Paused: 3}, ByResult: [listing.Results]int{listing.Failure: 4}}},
				Groups: []listing.Group{{
					ID: listing.GroupID{7}, Service: "S", Handler: "h", Code: 500, ErrorCode: "RT0007", Message: "m", Count: 5, ByStatus: [listing.Statuses]int{listing.Paused: 3},
					Keys: 2, FirstSeen: 1, LastSeen: 9, Sample: invocationID(2), Deployments: []ids.Deployment{"dp"},
				}},
				Other: 3,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got partition.List
			p := newFake(true)
			p.list = func(_ context.Context, q *partition.List) (partition.Listed, error) {
				got = *q
				return c.out, nil
			}
			r, _ := pair(t, p)
			out, err := r.List(t.Context(), &c.query)
			require.NoError(t, err)
			require.Equal(t, c.out, out)
			require.Equal(t, c.query, got)
		})
	}
}
