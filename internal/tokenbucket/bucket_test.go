package tokenbucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBurstThenRate(t *testing.T) {
	now := time.Unix(1000, 0)
	b := New(Rate{Count: 10, Period: time.Second, Capacity: 3})
	for range 3 {
		require.True(t, b.Has(now))
		b.Take(now)
		require.False(t, b.Full(now))
	}
	require.True(t, b.Full(now.Add(300*time.Millisecond)))
	require.False(t, b.Has(now))
	require.Equal(t, now.Add(100*time.Millisecond), b.Next(now))
	require.Equal(t, now.Add(200*time.Millisecond), b.When(now, 2))
	now = b.Next(now)
	require.True(t, b.Has(now))
	b.Take(now)
	require.False(t, b.Has(now))
	b.Return()
	require.True(t, b.Has(now))

	var none Bucket
	none.Take(now)
	none.Return()
	require.True(t, none.Has(now))
	require.False(t, none.Limited())
}

// In any interval, no more tokens are taken than the capacity and those that return meanwhile.
func TestNoIntervalExceedsTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{
			Count: rapid.IntRange(1, 1000).Draw(t, "count"), Capacity: rapid.IntRange(1, 50).Draw(t, "capacity"),
			Period: rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "period"),
		}
		b, now := New(r), time.Unix(1000, 0)
		var taken []time.Time
		for range 200 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*r.interval())).Draw(t, "step")))
			if b.Has(now) {
				b.Take(now)
				taken = append(taken, now)
			}
		}
		for i, from := range taken {
			for j, to := range taken[i:] {
				if most := r.Capacity + int(to.Sub(from)/r.interval()); j+1 > most {
					t.Fatalf("%d in %s, at most %d", j+1, to.Sub(from), most)
				}
			}
		}
	})
}
