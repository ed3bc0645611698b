package partition

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
)

// correctedClock is the wall clock of a node, which is wrong until it is corrected.
type correctedClock struct{ off atomic.Int64 }

func (c *correctedClock) Now() time.Time           { return time.Now().Add(time.Duration(c.off.Load())) }
func (c *correctedClock) AwaitNow(context.Context) {}

// While partition time is an hour ahead of or behind wall-clock time, handlers sleep and
// delay calls for the requested duration.
func TestSleepDurationsDoNotDependOnPartitionTime(t *testing.T) {
	const nap = 600 * time.Millisecond
	for name, lead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			services := restate.NewService("Steps").
				Handler("do", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) {
					return "", restate.Sleep(ctx, nap)
				})).
				Handler("later", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) {
					id := restate.ServiceSend(ctx, "Steps", "now").Send("x", restate.WithDelay(nap)).GetInvocationId()
					_, err := restate.AttachInvocation[string](ctx, id).Response()
					return "", err
				})).
				Handler("now", restate.NewServiceHandler(func(restate.Context, string) (string, error) { return "", nil }))
			wrong := new(correctedClock)
			wrong.off.Store(int64(lead))
			c := newTestNodeWith(t, 2, func(cfg *Config) { cfg.Clock = wrong }, services)
			for _, p := range c.partitions {
				require.NoError(t, p.WaitLeading(t.Context()))
			}
			wrong.off.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, handler := range []string{"do", "later", "later", "later", "later"} {
				inv := request("Steps", handler, `"x"`)
				p := c.partitions[machine.PartitionOf(inv.ID.PartitionKey(), 2)]
				begin := time.Now()
				end, _, err := p.Call(ctx, inv)
				require.NoError(t, err)
				require.Nil(t, end.Result.Failure)
				require.GreaterOrEqual(t, time.Since(begin), nap-ignoredOffset, handler)
				require.Less(t, time.Since(begin), time.Minute, handler)
			}
		})
	}
}

// While partition time is an hour behind wall-clock time, a step that may be retried for a minute is retried.
func TestRetriesDoNotDependOnPartitionTime(t *testing.T) {
	var tries atomic.Int32
	services := restate.NewService("Steps").
		Handler("do", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) {
			return restate.Run(ctx, func(restate.RunContext) (string, error) {
				if tries.Add(1) < 3 {
					return "", errors.New("try again")
				}
				return "done", nil
			}, restate.WithInitialRetryInterval(10*time.Millisecond), restate.WithMaxRetryDuration(10*time.Minute))
		}))
	wrong := new(correctedClock)
	wrong.off.Store(int64(-time.Hour))
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Clock = wrong }, services)
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))
	wrong.off.Store(0)
	end, _, err := p.Call(t.Context(), request("Steps", "do", `"x"`))
	require.NoError(t, err)
	require.Nil(t, end.Result.Failure)
	require.EqualValues(t, 3, tries.Load())
}

// Between two pages of a list, the difference between partition time and wall-clock time changes: it gets smaller, and
// the wall clock may be corrected again.
func TestListsThatBeginWithTheOldestMissNothing(t *testing.T) {
	const count, page = 6, 2
	wrong := new(correctedClock)
	wrong.off.Store(int64(-time.Hour))
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Clock = wrong }, restate.NewService("Steps").
		Handler("do", restate.NewServiceHandler(func(restate.Context, string) (string, error) { return "", nil })))
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))
	wrong.off.Store(0)
	for range count {
		later := request("Steps", "do", `"x"`)
		later.Delay = time.Hour.Milliseconds()
		_, err := p.Invoke(t.Context(), later)
		require.NoError(t, err)
	}
	seen := map[ids.Invocation]bool{}
	q := List{Kind: ListPlaces, Order: listing.Order{OldestFirst: true}, Limit: page}
	for range count / page {
		l, err := p.List(t.Context(), &q)
		require.NoError(t, err)
		require.Len(t, l.Places, page)
		for _, place := range l.Places {
			seen[place.ID] = true
		}
		q.After = &l.Places[page-1]
		wrong.off.Add(-int64(time.Minute))
	}
	require.Len(t, seen, count)
}

// While partition time is an hour ahead of or behind wall-clock time, displayed times are
// wall-clock times.
func TestDisplayedTimesAreWallClockTimes(t *testing.T) {
	const nap, tolerance = time.Hour, 2 * time.Minute
	near := func(t *testing.T, want time.Time, got int64, what string) {
		t.Helper()
		require.WithinDuration(t, want, time.UnixMilli(got), tolerance, what)
	}
	for name, lead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour, "right": 0} {
		t.Run(name, func(t *testing.T) {
			services := restate.NewService("Steps").
				Handler("do", restate.NewServiceHandler(func(restate.Context, string) (string, error) { return "", nil })).
				Handler("nap", restate.NewServiceHandler(func(ctx restate.Context, _ string) (string, error) { return "", restate.Sleep(ctx, nap) }))
			wrong := new(correctedClock)
			wrong.off.Store(int64(lead))
			c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Clock = wrong }, services)
			p := c.partitions[0]
			require.NoError(t, p.WaitLeading(t.Context()))
			wrong.off.Store(0)
			now := time.Now()

			kept := idempotent("Steps", "do", 3*time.Hour)
			end, _, err := p.Call(t.Context(), kept)
			require.NoError(t, err)
			near(t, now.Add(3*time.Hour), end.ExpiresAt, "end of the retention, to the caller")
			again, err := p.Await(t.Context(), kept.ID)
			require.NoError(t, err)
			near(t, now.Add(3*time.Hour), again.ExpiresAt, "end of the retention, attached")
			known, err := p.Invoke(t.Context(), kept)
			require.NoError(t, err)
			near(t, now.Add(3*time.Hour), known.ExpiresAt, "end of the retention, repeated")
			inv, err := p.Find(t.Context(), kept.ID)
			require.NoError(t, err)
			near(t, now, inv.CreatedAt, "creation")
			near(t, now, inv.CompletedAt, "end")

			later := request("Steps", "do", `"x"`)
			later.Delay = nap.Milliseconds()
			planned, err := p.Invoke(t.Context(), later)
			require.NoError(t, err)
			near(t, now.Add(nap), planned.StartAt, "planned start")

			napping := request("Steps", "nap", `"x"`)
			_, err = p.Invoke(t.Context(), napping)
			require.NoError(t, err)
			var entries []journal.Entry
			require.Eventually(t, func() bool {
				_, entries, err = p.Inspect(t.Context(), napping.ID, true)
				return err == nil && len(entries) == 2
			}, time.Minute, time.Millisecond)
			near(t, now, entries[0].AppendedAt, "entry")
			sleep, err := journal.ParseSleep(entries[1].Payload)
			require.NoError(t, err)
			near(t, now.Add(nap), sleep.WakeUpTime, "wake-up time")

			requireEndsWithContext(t, func(ctx context.Context) iter.Seq2[Record, error] { return p.Records(ctx, true) })
			count := 0
			for r, err := range p.Records(t.Context(), true) {
				require.NoError(t, err)
				near(t, now, r.CreatedAt, "creation in records")
				count++
			}
			page, err := p.Scan(t.Context(), &Scan{Table: Invocations, Detail: Whole, Keys: AllKeys})
			require.NoError(t, err)
			for _, r := range page.Rows {
				near(t, now, r.Record.CreatedAt, "creation in a table")
			}
			require.Equal(t, count, len(page.Rows))
			page, err = p.Scan(t.Context(), &Scan{Table: Journal, Detail: Whole, Keys: AllKeys, ID: napping.ID})
			require.NoError(t, err)
			near(t, now, page.Rows[0].Entry.AppendedAt, "entry in a table")
		})
	}
}
