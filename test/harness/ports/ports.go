// Package ports reserves TCP ports for tests that listen on a port more than once, or later than they
// choose it: after a restart, or in another process. A port that was only found to be free can be
// assigned to a connection of another test meanwhile.
package ports

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reserve returns a TCP port that is free on 127.0.0.1. On Linux it stays reserved until this process
// exits: the kernel assigns it neither to sockets that bind to port 0 nor to outgoing connections, but
// a process can listen on it explicitly.
func Reserve() (int, error) { return reserve() }

// Address reserves a port and returns its address.
func Address(t testing.TB) string {
	t.Helper()
	port, err := Reserve()
	require.NoError(t, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// Free reserves n ports.
func Free(t testing.TB, n int) []int {
	t.Helper()
	free := make([]int, n)
	for i := range free {
		var err error
		free[i], err = Reserve()
		require.NoError(t, err)
	}
	return free
}
