package process

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLimitsAreLoggedInOneUnit(t *testing.T) {
	limit := debug.SetMemoryLimit(966367642)
	defer debug.SetMemoryLimit(limit)
	var out bytes.Buffer
	const mib = 1 << 20
	PayloadLimits{Bodies: 512 * mib, Connection: 128 * mib, Attempts: 512 * mib}.Fit(32*mib, slog.New(slog.NewTextHandler(&out, nil)))
	require.Contains(t, out.String(), `memory_limit="922 MiB" bodies="230 MiB" bodies_of_a_connection="128 MiB" attempts="230 MiB"`)
}

func TestAContainerLimitsTheMemoryOfTheProcess(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(before)
	container := func(text string) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(text), nil }
	}
	require.Equal(t, int64(math.MaxInt64), limitMemory(false, container("max\n")), "no limit")
	require.Equal(t, int64(math.MaxInt64), limitMemory(true, container("1000000000\n")), "GOMEMLIMIT=off")
	require.Equal(t, int64(900_000_000), limitMemory(false, container("1000000000\n")))
	require.Equal(t, int64(900_000_000), limitMemory(true, container("500000000\n")), "GOMEMLIMIT")
}

func TestPayloadsFitIntoTheMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	p := PayloadLimits{Bodies: 256 * mib, Connection: 64 * mib, Attempts: 512 * mib}
	require.Equal(t, p, p.within(768*mib, 32*mib))
	require.Equal(t, PayloadLimits{128 * mib, 64 * mib, 256 * mib}, p.within(384*mib, 32*mib))
	require.Equal(t, PayloadLimits{32 * mib, 32 * mib, 32 * mib}, p.within(40*mib, 32*mib), "each has room for a message")
	require.Equal(t, PayloadLimits{8 * mib, 8 * mib, 32 * mib}, PayloadLimits{8 * mib, 64 * mib, 512 * mib}.within(mib, 32*mib), "never raised")
}
