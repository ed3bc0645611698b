package nodelink

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// unacknowledgedLimit returns the timeout that limitUnacknowledged has set.
func unacknowledgedLimit(t *testing.T, conn *net.TCPConn) (timeout time.Duration) {
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		require.NoError(t, err)
		timeout = time.Duration(ms) * time.Millisecond
	}))
	return timeout
}
