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
	soon = 10 * time.Second
	late = 300 * time.Millisecond
)

// need skips where something cannot be made: the faults of the network and of disks
// need rights that not every developer has.
func need(t *testing.T, missing error) {
	t.Helper()
	if missing != nil {
		t.Skip(missing)
	}
}

func TestHostsReachEachOtherUntilBlocked(t *testing.T) {
	need(t, Available())
	w, err := NewNetwork(3)
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	port := func(i int) string { return net.JoinHostPort(w.Hosts[i].IP, "5122") } // refused: nobody listens

	require.True(t, w.Hosts[0].Reaches(port(1), soon))
	require.True(t, w.Hosts[1].Reaches(net.JoinHostPort(Hub, "5122"), soon))

	// What 0 sends to 1 is lost, and so are its answers to what 1 sends.
	require.NoError(t, w.Block(0, 1))
	require.False(t, w.Hosts[0].Reaches(port(1), late))
	require.False(t, w.Hosts[1].Reaches(port(0), late))
	require.True(t, w.Hosts[0].Reaches(port(2), soon))
	require.True(t, w.Hosts[1].Reaches(port(2), soon))

	require.NoError(t, w.Unplug(2))
	require.False(t, w.Hosts[0].Reaches(port(2), late))
	require.NoError(t, w.Heal())
	for from := range w.Hosts {
		for to := range w.Hosts {
			require.True(t, w.Hosts[from].Reaches(port(to), soon), "%d to %d", from, to)
		}
	}
}

func TestDiskFillsUpAndHangs(t *testing.T) {
	need(t, DisksAvailable())
	d, err := NewDisk(t.TempDir(), 32<<20)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()

	require.NoError(t, d.Fill(0))
	_, err = d.SyncTime()
	require.Error(t, err)
	require.NoError(t, d.Empty())
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
		t.Fatal("a frozen disk took a write")
	case <-time.After(late):
	}
	require.NoError(t, d.Thaw())
	require.Greater(t, <-took, late)
}
