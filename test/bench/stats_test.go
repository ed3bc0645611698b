package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantileIsTheNearestRank(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	require.Equal(t, time.Duration(50), quantile(hundred, 0.50))
	require.Equal(t, time.Duration(99), quantile(hundred, 0.99))
	require.Equal(t, time.Duration(100), quantile(hundred, 1))
	require.Equal(t, time.Duration(1), quantile(hundred, 0))
	require.Equal(t, time.Duration(7), quantile([]time.Duration{7}, 0.99))
	require.Equal(t, time.Duration(2), quantile([]time.Duration{1, 2, 3}, 0.5))
	require.Zero(t, quantile(nil, 0.5))
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.Equal(t, 9.0, median([]float64{9}))
	require.True(t, math.IsNaN(median(nil)))
}

func TestRatiosLeaveOutDivisionByZero(t *testing.T) {
	require.Equal(t, []float64{2, 0.5}, ratios([]float64{4, 1, 1}, []float64{2, 0, 2}))
	require.Empty(t, ratios([]float64{1}, nil))
}

func TestTargetOrderAlternates(t *testing.T) {
	require.Equal(t, []string{"a", "b"}, targetOrder([]string{"a", "b"}, 1))
	require.Equal(t, []string{"b", "a"}, targetOrder([]string{"a", "b"}, 2))
	require.Equal(t, []string{"a", "b"}, targetOrder([]string{"a", "b"}, 3))
}

// Ratios are computed per round before their median: here the machine was ten times slower
// in round 2, and a was always twice as fast.
func TestTableComparesRoundByRound(t *testing.T) {
	row := func(round int, target string, rate float64) result {
		return result{Round: round, Target: target, Step: "echo/1", Rate: rate, P50: 1000 / rate, P99: 2000 / rate, ServerCPU: 100}
	}
	slow := row(2, "b", 100)
	slow.Note = "3 executions repeated"
	var out strings.Builder
	err := writeTable(&out, []string{"a", "b"}, []result{
		row(1, "a", 2000), row(1, "b", 1000), slow, row(2, "a", 200), row(3, "a", 2100), row(3, "b", 1000),
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"step    target     op/s   p50 ms   p99 ms  server µs/op  service µs/op  written KiB/op   RSS MB",
		"echo/1  a          2000     0.50     1.00           100              0             0.0        0",
		"echo/1  b          1000     1.00     2.00           100              0             0.0        0  3 executions repeated",
		"echo/1  a ÷ b     ×2.00    ×0.50    ×0.50         ×1.00                                          op/s ×2.00 to ×2.10",
	}, lines(out.String()))
}

// lines splits text and drops spaces at the ends of lines.
func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		list = append(list, strings.TrimRight(line, " \n"))
	}
	return list
}
