package flowcontrol

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRates(t *testing.T) {
	for text, want := range map[string]struct {
		rate Rate
		text string
	}{
		"100/s":       {Rate{100, time.Second}, "100/s"},
		"100":         {Rate{100, time.Second}, "100/s"},
		" 3 / min ":   {Rate{3, time.Minute}, "3/m"},
		"7/hour":      {Rate{7, time.Hour}, "7/h"},
		"7/day":       {Rate{7, 24 * time.Hour}, "7/d"},
		"5/10s":       {Rate{5, 10 * time.Second}, "5/10s"},
		"5/1m 30s":    {Rate{5, 90 * time.Second}, "5/1m30s"},
		"5/PT90S":     {Rate{5, 90 * time.Second}, "5/1m30s"},
		"1/ms":        {Rate{1, time.Millisecond}, "1/ms"},
		"1/100ms":     {Rate{1, 100 * time.Millisecond}, "1/100ms"},
		"1/11s":       {Rate{1, 11 * time.Second}, "1/11s"},
		"4294967295":  {Rate{4294967295, time.Second}, "4294967295/s"},
		"2/1 minutes": {Rate{2, time.Minute}, "2/m"},
	} {
		rate, err := ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want.rate, rate, text)
		require.Equal(t, want.text, rate.String())
	}
}

func TestInvalidRates(t *testing.T) {
	for text, reason := range map[string]string{
		"":           "a number and a period",
		"s":          "a number and a period",
		"-1/s":       "a number and a period",
		"1.5/s":      "a number and a period",
		"1/":         "a number and a period",
		"1/parsec":   "a number and a period",
		"1/s/s":      "a number and a period",
		"0/s":        "at least 1",
		"4294967296": "at most 4294967295",
		"1/0s":       "whole number of milliseconds",
		"1/1us":      "whole number of milliseconds",
		"1/1500us":   "whole number of milliseconds",
		"1/32d":      "at most 31d",
	} {
		_, err := ParseRate(text)
		require.ErrorContains(t, err, reason, text)
	}
}

func TestEveryRateReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := Rate{
			Count:  rapid.Uint32Min(1).Draw(t, "count"),
			Period: time.Duration(rapid.Int64Range(1, int64(MaxPeriod/MinPeriod)).Draw(t, "period")) * MinPeriod,
		}
		require.NoError(t, rate.check())
		back, err := ParseRate(rate.String())
		require.NoError(t, err)
		require.Equal(t, rate, back)
	})
}

func TestLimitsAreComparedByValue(t *testing.T) {
	full := func() Limits {
		n := uint64(3)
		return Limits{Concurrency: 1, Rate: &Rate{1, time.Second}, QueueLimit: &n}
	}
	require.True(t, full().equal(full()))
	for name, change := range map[string]func(*Limits){
		"concurrency": func(l *Limits) { l.Concurrency = 2 },
		"no rate":     func(l *Limits) { l.Rate = nil },
		"rate":        func(l *Limits) { l.Rate.Count = 2 },
		"no queue":    func(l *Limits) { l.QueueLimit = nil },
		"queue":       func(l *Limits) { *l.QueueLimit = 0 },
	} {
		other := full()
		change(&other)
		require.False(t, full().equal(other), name)
		require.False(t, other.equal(full()), name)
	}
}
