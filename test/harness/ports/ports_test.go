package ports

import (
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A reserved port is assigned to no listener and to no outgoing connection, although there are more of
// them than other ports, and a listener can be opened on it several times.
func TestReservedPortsAreNotAssigned(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("ports are reserved on Linux only")
	}
	const count = 500
	reserved := map[string]bool{}
	for range count {
		reserved[Address(t)] = true
	}
	require.Len(t, reserved, count)
	target, err := net.Listen("tcp", Address(t))
	require.NoError(t, err)
	defer target.Close()
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.False(t, reserved[l.Addr().String()])
		require.NoError(t, l.Close())
		conn, err := net.Dial("tcp", target.Addr().String())
		require.NoError(t, err)
		require.False(t, reserved[conn.LocalAddr().String()])
		require.NoError(t, conn.Close())
		accepted, err := target.Accept()
		require.NoError(t, err)
		require.NoError(t, accepted.Close())
	}
	for address := range reserved {
		for range 2 {
			l, err := net.Listen("tcp", address)
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
		break
	}
}
