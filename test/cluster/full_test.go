package cluster

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/harness/sandbox"
)

const (
	// shutdownTimeout is the shutdown timeout of the nodes of TestShutdownWithFullDisk.
	shutdownTimeout = 12 * time.Second
	// exitTimeout is the additional time to exit on a busy machine.
	exitTimeout = 20 * time.Second
)

// TestShutdownWithFullDisk stops a node with SIGTERM whose disk has become full under
// load. The process must exit within the shutdown timeout although it cannot write, and
// must recover all data once there is space.
func TestShutdownWithFullDisk(t *testing.T) {
	if err := sandbox.Available(); err != nil {
		t.Skip(err)
	}
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("FullDiskOf%d", nodes), func(t *testing.T) {
			b := newTestbed(t, testbedOptions{
				nodes: nodes, diskSize: 1 << 30,
				env: map[string]string{"SHUTDOWN_TIMEOUT": shutdownTimeout.String()},
			})
			run := b.startLoad(t, true)
			harness.Sleep(t.Context(), time.Second)
			for _, after := range []time.Duration{0, 400 * time.Millisecond, 3 * time.Second} {
				b.shutDownWithFullDisk(t, after)
			}
			require.NoError(t, run.Stop(t.Context()).Err())
		})
	}
}

// shutDownWithFullDisk fills the disk of the first node and stops the node after delay.
func (b *testbed) shutDownWithFullDisk(t *testing.T, delay time.Duration) {
	if len(b.Nodes) == 1 {
		b.targets.SetQuorumLost(true)
	}
	b.targets.MarkFaulty(0)
	b.targets.CancelRequests(0)
	ctx, stopFilling := context.WithCancel(t.Context())
	defer stopFilling()
	filled := make(chan error, 1)
	require.NoError(t, b.disks[0].Fill(0))
	go func() { filled <- b.keepFull(ctx, b.disks[0], time.Hour) }()

	harness.Sleep(t.Context(), delay)
	process := b.Nodes[0].Process
	_ = process.Signal(syscall.SIGTERM) // it may have exited
	begin := time.Now()
	if err := process.AwaitExit(shutdownTimeout + exitTimeout); err != nil {
		_ = process.Signal(syscall.SIGQUIT) // shows where it hangs
		require.NoError(t, process.AwaitExit(exitTimeout))
		t.Errorf("%v with the disk full for %s:\n%s", err, delay, process.LogTail(400))
	}
	t.Logf("exited within %s, %s after the disk became full", time.Since(begin).Round(time.Millisecond), delay)
	stopFilling()
	require.NoError(t, <-filled)
	require.NoError(t, b.disks[0].Unfill())
	require.NoError(t, b.Nodes[0].Restart(t.Context()))
	require.NoError(t, b.awaitRecovery(t.Context()))
}
