package cluster

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness/sandbox"
)

// shutdownTimeout is how long the nodes of TestAFullDiskHoldsUpNoShutdown may take.
const shutdownTimeout = 12 * time.Second

// TestAFullDiskHoldsUpNoShutdown ends a node with SIGTERM whose disk has become full
// under load and stays so. It has to end in the time it is given, whatever it cannot
// write, and goes on with all it had once there is room.
func TestAFullDiskHoldsUpNoShutdown(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skip(err)
	}
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("FullDiskOf%d", nodes), func(t *testing.T) {
			b := newBed(t, bedOptions{
				nodes: nodes, disks: 1 << 30,
				env: map[string]string{"SHUTDOWN_TIMEOUT": shutdownTimeout.String()},
			})
			run := b.load(t, true)
			pause(t.Context(), time.Second)
			for _, after := range []time.Duration{0, 400 * time.Millisecond, 3 * time.Second} {
				b.endOnAFullDisk(t, after)
			}
			require.NoError(t, run.Stop(t.Context()).Err())
		})
	}
}

// endOnAFullDisk fills the disk of the first node and ends the node so much later.
func (b *bed) endOnAFullDisk(t *testing.T, after time.Duration) {
	if len(b.Nodes) == 1 {
		b.nodes.Outage(true)
	}
	b.nodes.Trouble(0)
	b.nodes.Abandon(0)
	full, empty := context.WithCancel(t.Context())
	defer empty()
	filled := make(chan error, 1)
	require.NoError(t, b.disks[0].Fill(0))
	go func() { filled <- b.fill(full, b.disks[0], time.Hour) }()

	pause(t.Context(), after)
	process := b.Nodes[0].Process
	_ = process.Signal(syscall.SIGTERM) // it may have ended
	begin := time.Now()
	if err := process.AwaitExit(shutdownTimeout + time.Second); err != nil {
		_ = process.Signal(syscall.SIGQUIT) // shows where it hangs
		require.NoError(t, process.AwaitExit(10*time.Second))
		t.Errorf("%v after the disk was full for %s:\n%s", err, after, process.LogTail(400))
	}
	t.Logf("ended within %s, %s after the disk had become full", time.Since(begin).Round(time.Millisecond), after)
	empty()
	require.NoError(t, <-filled)
	require.NoError(t, b.disks[0].Unfill())
	require.NoError(t, b.Nodes[0].Restart(t.Context()))
	require.NoError(t, b.mend(t.Context()))
}
