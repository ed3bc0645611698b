package httpserver

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Connections that are established, and not accepted yet, when a listener is closed are not reset.
func TestEstablishedConnectionsAreAcceptedWhenAListenerIsClosed(t *testing.T) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ln := &backlog{Listener: port, port: port.(*net.TCPListener)}
	var clients []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", port.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		clients = append(clients, c)
	}
	require.NoError(t, ln.Close())
	for range clients {
		c, err := ln.Accept()
		require.NoError(t, err)
		_, err = io.WriteString(c, "a")
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	for _, c := range clients {
		received, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "a", string(received))
	}
	_, err = ln.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
