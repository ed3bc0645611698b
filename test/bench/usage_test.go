package main

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseUsage(t *testing.T) {
	const stat = "4711 (a name) with) 3 spaces) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 12 0 100 1000000 30 18446744073709551615 1\n"
	u, err := parseUsage(stat, 4096)
	require.NoError(t, err)
	require.Equal(t, usage{cpu: 1750 * time.Millisecond, rss: 30 * 4096}, u)

	_, err = parseUsage("4711 (cut) S 1 2 3", 4096)
	require.ErrorContains(t, err, "only 4 fields")
	_, err = parseUsage("1 (x) S 1 2 3 4 5 6 7 8 9 10 many 25 0 0 20 0 12 0 100 1000000 30 0", 4096)
	require.ErrorContains(t, err, "field 14")
}

func TestParseWritten(t *testing.T) {
	n, err := parseWritten("rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 5\n")
	require.NoError(t, err)
	require.EqualValues(t, 4096, n)
	_, err = parseWritten("rchar: 1\n")
	require.ErrorContains(t, err, "written bytes in")
}

func TestUsageOfThisProcess(t *testing.T) {
	u, err := usageOf(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, u.rss, int64(1<<20))
	require.Less(t, u.cpu, time.Hour)
	_, err = usageOf(-1)
	require.Error(t, err)
}
