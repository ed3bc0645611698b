package process

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMeterMeasuresThisProcess(t *testing.T) {
	m := NewMeter()
	u := m.Usage()
	require.Zero(t, u.CPU)
	require.Equal(t, runtime.GOMAXPROCS(0), u.Cores)
	require.Greater(t, u.Memory, uint64(1<<20))
	require.Greater(t, u.MemoryLimit, u.Memory)

	ballast := make([]byte, 256<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	require.Greater(t, m.measure(0).Memory, u.Memory+200<<20)
	runtime.KeepAlive(ballast)
}

func TestProcessorTimeOfABusyProcess(t *testing.T) {
	before := processorTime()
	for end := time.Now().Add(time.Minute); processorTime()-before < 50*time.Millisecond; {
		require.True(t, time.Now().Before(end))
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, NewMeter().Run(ctx, nil))
}

func TestMemoryLimitOfAContainer(t *testing.T) {
	machine := memoryLimit(func(string) ([]byte, error) { return nil, os.ErrNotExist })
	require.Positive(t, machine)
	for text, want := range map[string]uint64{"268435456\n": 256 << 20, "max\n": machine, "9223372036854771712\n": machine, "": machine} {
		require.Equal(t, want, memoryLimit(func(path string) ([]byte, error) {
			if path == "/sys/fs/cgroup/memory.max" {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		}), text)
	}
	require.Zero(t, residentMemory(func(string) ([]byte, error) { return []byte("12"), nil }))
}
