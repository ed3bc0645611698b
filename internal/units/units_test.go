package units

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0":                     0,
		"0s":                    0,
		"1h 30m":                90 * time.Minute,
		"1h30m":                 90 * time.Minute,
		"5 hours":               5 * time.Hour,
		"60sec":                 time.Minute,
		"500ms":                 500 * time.Millisecond,
		"2 days":                48 * time.Hour,
		"1.5s":                  1500 * time.Millisecond,
		"10 s":                  10 * time.Second,
		" 1w ":                  7 * Day,
		"250us":                 250 * time.Microsecond,
		"3µs":                   3 * time.Microsecond,
		"PT90S":                 90 * time.Second,
		"P1D":                   Day,
		"P1DT12H":               36 * time.Hour,
		"P2W":                   14 * Day,
		"PT0.5S":                500 * time.Millisecond,
		"pt1m":                  time.Minute,
		"9223372036854775807ns": math.MaxInt64,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseDurationRejects(t *testing.T) {
	for text, why := range map[string]string{
		"":                         "empty",
		"  ":                       "empty",
		"-1s":                      "negative",
		"5":                        "lacks a unit",
		"1.2.3s":                   "not a number",
		".s":                       "not a number",
		"s":                        "no number",
		"10 parsecs":               "not a unit",
		"1h -5m":                   "no number",
		"P":                        "ISO 8601",
		"PT":                       "ISO 8601",
		"P1Y":                      "ISO 8601",
		"P1DT":                     "ISO 8601",
		"PT5":                      "ISO 8601",
		"PT1S1M":                   "ISO 8601",
		"200000 weeks":             "292 years",
		"9223372036854775807ns1ns": "292 years",
		"99999999999999999999s":    "292 years",
	} {
		_, err := ParseDuration(text)
		require.ErrorContains(t, err, why, text)
	}
}

func TestFormatDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"1d":                                    Day,
		"1m 30s":                                90 * time.Second,
		"10m":                                   10 * time.Minute,
		"500ms":                                 500 * time.Millisecond,
		"0s":                                    0,
		"1s 1ms 1us":                            time.Second + time.Millisecond + time.Microsecond,
		"-1m":                                   -time.Minute,
		"106751d 23h 47m 16s 854ms 775us 807ns": math.MaxInt64,
	} {
		require.Equal(t, want, FormatDuration(d))
	}
}

func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Duration(rapid.Int64Min(0).Draw(t, "nanoseconds"))
		text, err := d.MarshalText()
		require.NoError(t, err)
		var back Duration
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, d, back)
	})
}

func TestParseByteSize(t *testing.T) {
	for text, want := range map[string]ByteSize{
		"32 MiB": 32 * MiB, "1.5GB": 1_500_000_000, "500MB": 500_000_000, "1048576": MiB,
		"0": 0, "64KiB": 64 * KiB, "0.5 gib": GiB / 2, "12 B": 12, "2Ti": 2 * TiB,
		"18446744073709551615": math.MaxUint64,
	} {
		got, err := parseByteSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-1", "1 parsec", "1.2.3 MB", "20000000 TiB", "18446744073709551616"} {
		_, err := parseByteSize(text)
		require.Error(t, err, text)
	}
}

func TestFormatByteSize(t *testing.T) {
	for want, b := range map[string]ByteSize{
		"32.0 MiB": 32 * MiB, "1.5 GiB": GiB + GiB/2, "50.0 KiB": 50 * KiB, "1025 B": 1025, "0 B": 0,
	} {
		require.Equal(t, want, formatByteSize(b))
	}
}

func TestByteSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := ByteSize(rapid.OneOf(rapid.Uint64(), rapid.Uint64Max(1<<40)).Draw(t, "bytes"))
		text, err := b.MarshalText()
		require.NoError(t, err)
		var back ByteSize
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, b, back)
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"1h 30m", "PT90S", "1.5s", "0", "2 days"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, d, time.Duration(0))
		back, err := ParseDuration(FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, back)
	})
}

func TestCountedHasTheNounInSingularOrPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 nodes", 1: "1 node", 2: "2 nodes"} {
		require.Equal(t, want, Counted(n, "node"))
	}
}
