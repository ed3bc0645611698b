package membership

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheMajoritysTimeCounts(t *testing.T) {
	for _, c := range []struct {
		name   string
		others []time.Duration // ahead of this machine's clock
		want   time.Duration
	}{
		{"alone", nil, 0},
		{"noise", []time.Duration{60 * time.Millisecond, 80 * time.Millisecond}, 0},
		{"of two that differ each goes by its own", []time.Duration{time.Hour}, 0},
		{"one of the others is ahead", []time.Duration{time.Hour, 0}, 0},
		{"one of the others is behind", []time.Duration{-24 * time.Hour, 0}, 0},
		{"this one is behind", []time.Duration{time.Hour, time.Hour}, time.Hour},
		{"this one is ahead", []time.Duration{-24 * time.Hour, -24 * time.Hour}, -24 * time.Hour},
		{"this one is a second ahead", []time.Duration{-time.Second, -time.Second}, -time.Second},
		{"three times, and this one is the last", []time.Duration{time.Hour, 2 * time.Hour}, time.Hour},
		{"three times, and this one is in the middle", []time.Duration{time.Hour, -time.Hour}, 0},
		{"two against two", []time.Duration{0, time.Hour, time.Hour}, 0},
		{"one against three", []time.Duration{time.Hour, time.Hour, time.Hour}, time.Hour},
		{"two of five", []time.Duration{0, time.Hour, time.Hour, time.Hour}, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newClocks(time.Now, slog.New(slog.DiscardHandler))
				for i, ahead := range c.others {
					k.note(string(rune('b'+i)), time.Now().Add(ahead), 0)
				}
				require.Equal(t, c.want, k.now().Sub(time.Now().Round(0)))
				time.Sleep(10 * time.Minute)
				require.Equal(t, c.want, k.now().Sub(time.Now().Round(0)), "it goes on from there")
			})
		})
	}
}

func TestAStepOfThisClockIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := newClocks(time.Now, slog.New(slog.NewTextHandler(&out, nil)))
		for _, node := range []string{"b", "c"} {
			k.note(node, time.Now(), 10*time.Millisecond)
		}
		time.Sleep(time.Minute)
		step := time.Hour
		k.wall = func() time.Time { return time.Now().Add(step) }
		require.WithinDuration(t, time.Now(), k.now(), 10*time.Millisecond)
		require.WithinDuration(t, time.Now(), k.now(), 10*time.Millisecond)
		require.Equal(t, 1, strings.Count(out.String(), "off_by=59m59.995s"), "said once: %s", &out)
		step = 0
		k.now()
		require.Contains(t, out.String(), "right again")

		step = time.Hour
		time.Sleep(clockMemory)
		require.WithinDuration(t, time.Now().Add(step), k.now(), time.Millisecond, "what was said long ago does not count")
	})
}

func TestAnAnswerThatTookLongSaysNothing(t *testing.T) {
	k := newClocks(time.Now, slog.New(slog.DiscardHandler))
	k.note("b", time.Now().Add(time.Hour), 6*time.Second)
	require.False(t, k.settled([]string{"b"}))
}

func TestSettledOnceNothingMoreMatters(t *testing.T) {
	k := newClocks(time.Now, slog.New(slog.DiscardHandler))
	require.True(t, k.settled(nil), "alone")
	all := []string{"b", "c"}
	require.False(t, k.settled(all))
	k.note("b", time.Now().Add(time.Hour), 0)
	require.False(t, k.settled(all), "one against one")
	require.True(t, k.settled([]string{"b"}), "there is nobody else to ask")
	k.note("b", time.Now(), 0)
	require.True(t, k.settled(all), "two of three agree")
	k.note("b", time.Now().Add(time.Hour), 0)
	k.note("c", time.Now(), 0)
	require.True(t, k.settled(all), "all have been heard")
}

func TestNodesCompareTheirClocks(t *testing.T) {
	a, b, c := three(t, func(cfg *Config) {
		if cfg.Name == "c" {
			cfg.wall = func() time.Time { return time.Now().Add(-time.Hour) }
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, n := range []*testNode{a, b, c} {
		n.AwaitNow(ctx)
		require.NoError(t, ctx.Err())
		before := time.Now()
		now := n.Now()
		require.WithinRange(t, now, before.Add(-2*clockNoise), time.Now().Add(2*clockNoise), n.Self().Name)
	}
}
