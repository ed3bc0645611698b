package observability

import (
	"bufio"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// withSlowDisk runs f while each synchronization of files by the single node takes 200 ms longer. A
// tracer holds the threads in these system calls: file systems that are slow on request block
// writes, which the server waits for before it synchronizes them.
func (l *laboratory) withSlowDisk(f func()) {
	program, err := exec.LookPath("strace")
	if err != nil {
		l.Skip("SKIPPED: strace, which slows the disk, is not installed (Debian: apt-get install strace)")
	}
	const calls = "fsync,fdatasync,sync_file_range"
	cmd := exec.CommandContext(l.Context(), program, "-f", "-p", strconv.Itoa(l.solo.Process.PID()), "-e", "trace="+calls, "-e", "inject="+calls+":delay_exit=200000")
	output, err := cmd.StderrPipe()
	require.NoError(l, err)
	require.NoError(l, cmd.Start())
	lines := bufio.NewReader(output)
	first, err := lines.ReadString('\n')
	drained := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		close(drained)
	}()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it detaches
		<-drained
		_ = cmd.Wait()
	}()
	if !strings.Contains(first, " attached") {
		l.Skipf("SKIPPED: strace, which slows the disk, may not trace the server: %s %v", strings.TrimSpace(first), err)
	}
	f()
}

// faultOfTheDisk is the first fault, since the alert is about the last minutes and the node must not
// have had many synchronizations that were quick.
func (l *laboratory) faultOfTheDisk() {
	l.Run(slowDisk, func(t *testing.T) {
		outer := l.T
		l.T = t
		defer func() { l.T = outer }()
		l.fired[slowDisk] = true
		if slices.Contains(l.alerts(true, "pending", "firing"), slowDisk) {
			t.Skip("SKIPPED: the disk of this machine is slow without the fault")
		}
		l.withSlowDisk(func() {
			l.fire(true, func() { l.call("Flaky/run") }, slowDisk)
		})
	})
}
