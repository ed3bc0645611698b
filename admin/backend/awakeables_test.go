package backend

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
)

// Pages end between invocations, whatever the number of awakeables of each.
func TestAwakeablesAreListedFromTheLongestSuspended(t *testing.T) {
	for _, level := range []feature.Level{feature.Level3, feature.Level4} {
		c, partitions := newStored(t, level)
		var want []string
		const waiting = 2500 // more than are read at a time
		for n := range waiting {
			inv := &machine.Invocation{
				ID: ids.NewInvocation(ids.HashKey(fmt.Sprint("w", n)), [16]byte{byte(n), byte(n >> 8)}), Status: machine.Suspended, CreatedAt: 1, ModifiedAt: int64(1000 + n),
				Target: machine.Target{Service: "Payment", Handler: "charge", Type: target.Service}, Await: &journal.Future{Signals: []uint32{journal.CancelSignal}, Completions: []uint32{1}},
			}
			for signal := range uint32(n % 4) {
				if n%100 < 4 || n > waiting-20 {
					inv.Await.Nested = append(inv.Await.Nested, journal.Future{Signals: []uint32{ids.FirstAwakeable + signal}})
					want = append(want, ids.Awakeable{Invocation: inv.ID, Signal: ids.FirstAwakeable + signal}.String())
				}
			}
			p := partitions[machine.PartitionOf(inv.ID.PartitionKey(), 3)]
			p.records = append(p.records, inv)
		}
		for _, limit := range []int{1, 2, 7, 1000} {
			q := admin.Query{Limit: limit, Filter: listing.Filter{Services: []string{"Payment"}}}
			var found []string
			for {
				page, err := c.Awakeables(t.Context(), q)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Awakeables), max(limit, 3))
				for _, a := range page.Awakeables {
					found = append(found, a.ID)
					require.GreaterOrEqual(t, a.WaitingSince, a.CreatedAt)
				}
				if page.Next == "" {
					break
				}
				q.Cursor = page.Next
			}
			require.Equal(t, want, found, "level %d, limit %d", level, limit)
		}
		page, err := c.Awakeables(t.Context(), admin.Query{Limit: 100, Filter: listing.Filter{Services: []string{"Other"}}})
		require.NoError(t, err)
		require.Empty(t, page)
		_, err = c.Awakeables(t.Context(), admin.Query{Limit: 1, Cursor: "m:x"})
		require.Error(t, err)
	}
}
