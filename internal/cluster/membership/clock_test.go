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

func TestNowFollowsTheMajority(t *testing.T) {
	for _, c := range []struct {
		name   string
		others []time.Duration // ahead of this machine's clock
		want   time.Duration
	}{
		{"single node", nil, 0},
		{"noise", []time.Duration{60 * time.Millisecond, 80 * time.Millisecond}, 0},
		{"two nodes disagree", []time.Duration{time.Hour}, 0},
		{"one of the others is ahead", []time.Duration{time.Hour, 0}, 0},
		{"one of the others is behind", []time.Duration{-24 * time.Hour, 0}, 0},
		{"this one is behind", []time.Duration{time.Hour, time.Hour}, time.Hour},
		{"this one is ahead", []time.Duration{-24 * time.Hour, -24 * time.Hour}, -24 * time.Hour},
		{"this one is a second ahead", []time.Duration{-time.Second, -time.Second}, -time.Second},
		{"all differ, this one is the earliest", []time.Duration{time.Hour, 2 * time.Hour}, time.Hour},
		{"all differ, this one is the median", []time.Duration{time.Hour, -time.Hour}, 0},
		{"two against two", []time.Duration{0, time.Hour, time.Hour}, 0},
		{"one against three", []time.Duration{time.Hour, time.Hour, time.Hour}, time.Hour},
		{"two of five", []time.Duration{0, time.Hour, time.Hour, time.Hour}, time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newClocks(time.Now, slog.New(slog.DiscardHandler))
				for i, ahead := range c.others {
					k.record(string(rune('b'+i)), time.Now().Add(ahead), 0)
				}
				require.Equal(t, c.want, k.now().Sub(time.Now().Round(0)))
				time.Sleep(10 * time.Minute)
				require.Equal(t, c.want, k.now().Sub(time.Now().Round(0)), "the offset is constant")
			})
		})
	}
}

func TestClockStepIsDetectedImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := newClocks(time.Now, slog.New(slog.NewTextHandler(&out, nil)))
		for _, node := range []string{"b", "c"} {
			k.record(node, time.Now(), 10*time.Millisecond)
		}
		time.Sleep(time.Minute)
		step := time.Hour
		k.wall = func() time.Time { return time.Now().Add(step) }
		require.WithinDuration(t, time.Now(), k.now(), 10*time.Millisecond)
		require.WithinDuration(t, time.Now(), k.now(), 10*time.Millisecond)
		require.Equal(t, 1, strings.Count(out.String(), "off_by=59m59.995s"), "logged once: %s", &out)
		step = 0
		k.now()
		require.Contains(t, out.String(), "agrees with the cluster again")

		step = time.Hour
		time.Sleep(sampleTTL)
		require.WithinDuration(t, time.Now().Add(step), k.now(), time.Millisecond, "expired samples are ignored")
	})
}

func TestSlowClockSamplesAreIgnored(t *testing.T) {
	k := newClocks(time.Now, slog.New(slog.DiscardHandler))
	k.record("b", time.Now().Add(time.Hour), 6*time.Second)
	require.False(t, k.converged([]string{"b"}))
}

func TestClocksConverge(t *testing.T) {
	k := newClocks(time.Now, slog.New(slog.DiscardHandler))
	require.True(t, k.converged(nil), "single node")
	all := []string{"b", "c"}
	require.False(t, k.converged(all))
	k.record("b", time.Now().Add(time.Hour), 0)
	require.False(t, k.converged(all), "one sample disagrees")
	require.True(t, k.converged([]string{"b"}), "all nodes sampled")
	k.record("b", time.Now(), 0)
	require.True(t, k.converged(all), "two of three agree")
	k.record("b", time.Now().Add(time.Hour), 0)
	k.record("c", time.Now(), 0)
	require.True(t, k.converged(all), "all nodes sampled")
}

func TestNodesCompareTheirClocks(t *testing.T) {
	a, b, c := three(t, func(cfg *Config) {
		if cfg.Name == "c" {
			cfg.wall = func() time.Time { return time.Now().Add(-time.Hour) }
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, n := range []*testNode{a, b, c} {
		n.AwaitNow(ctx)
		require.NoError(t, ctx.Err())
		before := time.Now()
		now := n.Now()
		require.WithinRange(t, now, before.Add(-2*clockNoise), time.Now().Add(2*clockNoise), n.selfMember().Name)
	}
}
