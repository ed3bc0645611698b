package partition

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/machine"
)

// With a retention of zero or little, a call with the same idempotency key runs again once
// the retention is over, its result is no longer found, and a retry of the first request
// receives the first result.
func TestShortRetentionsAreHonoured(t *testing.T) {
	for _, kept := range []time.Duration{0, 300 * time.Millisecond} {
		t.Run(kept.String(), func(t *testing.T) {
			var runs atomic.Int64
			services := restate.NewService("Steps").Handler("do", restate.NewServiceHandler(
				func(restate.Context, string) (string, error) { return strconv.FormatInt(runs.Add(1), 10), nil }))
			c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Level = func() feature.Level { return feature.Level2 } }, services)
			p := c.partitions[0]
			require.NoError(t, p.WaitLeading(t.Context()))
			call := func(request uint64) (string, machine.Outcome) {
				inv := idempotent("Steps", "do", kept)
				inv.Request = request
				end, o, err := p.Call(t.Context(), inv)
				require.NoError(t, err)
				require.Nil(t, end.Result.Failure)
				return string(end.Result.Value), o
			}
			id := idempotent("Steps", "do", kept).ID
			result, _ := call(1)
			require.Equal(t, `"1"`, result)
			require.Eventually(t, func() bool {
				_, err := p.Find(t.Context(), id)
				return err != nil
			}, time.Minute, time.Millisecond)
			_, err := p.Find(t.Context(), id)
			require.ErrorIs(t, err, ErrNotFound)
			_, err = p.Await(t.Context(), id)
			require.ErrorIs(t, err, ErrNotFound)

			result, o := call(1)
			require.Equal(t, `"1"`, result, "a retry")
			require.True(t, o.Own)
			result, _ = call(2)
			require.Equal(t, `"2"`, result, "a new request")
			result, _ = call(1)
			require.Equal(t, `"1"`, result, "a late retry")
			require.EqualValues(t, 2, runs.Load())
		})
	}
}

// idempotent returns an idempotent request, always with the same ID.
func idempotent(service, handler string, kept time.Duration) *machine.Invoke {
	inv := request(service, handler, `"x"`)
	inv.ID, inv.IdempotencyKey = ids.OfIdempotent("", service, "", handler, "key"), new("key")
	inv.Retention = machine.Retention{Completion: kept.Milliseconds()}
	return inv
}
