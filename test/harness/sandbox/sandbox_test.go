package sandbox

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Run(m.Run)) }

const (
	reachTimeout   = 10 * time.Second
	blockedTimeout = 300 * time.Millisecond
)

// skipIf skips the test if reason is not nil: fault injection requires privileges that
// not every developer has.
func skipIf(t *testing.T, reason error) {
	t.Helper()
	if reason != nil {
		t.Skip(reason)
	}
}

func TestNetworkBlocksAndHeals(t *testing.T) {
	skipIf(t, Available())
	w, err := NewNetwork(3)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	port := func(i int) string { return net.JoinHostPort(w.Hosts[i].IP, "5122") } // nothing listens, so connections are refused

	require.True(t, w.Hosts[0].Reaches(port(1), reachTimeout))
	require.True(t, w.Hosts[1].Reaches(net.JoinHostPort(Hub, "5122"), reachTimeout))

	// Blocking 0 to 1 also loses the responses of 0 to 1.
	require.NoError(t, w.Block(0, 1))
	require.False(t, w.Hosts[0].Reaches(port(1), blockedTimeout))
	require.False(t, w.Hosts[1].Reaches(port(0), blockedTimeout))
	require.True(t, w.Hosts[0].Reaches(port(2), reachTimeout))
	require.True(t, w.Hosts[1].Reaches(port(2), reachTimeout))

	require.NoError(t, w.Unplug(2))
	require.False(t, w.Hosts[0].Reaches(port(2), blockedTimeout))
	require.NoError(t, w.Heal())
	for from := range w.Hosts {
		for to := range w.Hosts {
			require.True(t, w.Hosts[from].Reaches(port(to), reachTimeout), "%d to %d", from, to)
		}
	}
}

func TestDiskFillsAndFreezes(t *testing.T) {
	skipIf(t, DisksAvailable())
	d, err := NewDisk(t.TempDir(), 32<<20)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()

	require.NoError(t, d.Fill(0))
	_, err = d.SyncTime()
	require.Error(t, err)
	require.NoError(t, d.Unfill())
	_, err = d.SyncTime()
	require.NoError(t, err)

	require.NoError(t, d.Freeze())
	took := make(chan time.Duration)
	go func() {
		defer close(took)
		if d, err := d.SyncTime(); err == nil {
			took <- d
		}
	}()
	select {
	case <-took:
		t.Fatal("a write to a frozen disk succeeded")
	case <-time.After(blockedTimeout):
	}
	require.NoError(t, d.Thaw())
	require.Greater(t, <-took, blockedTimeout)
}
