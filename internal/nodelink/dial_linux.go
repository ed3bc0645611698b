package nodelink

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged closes conn once sent data has been unacknowledged for timeout.
func limitUnacknowledged(conn *net.TCPConn, timeout time.Duration) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	// Without it the connection closes later, by the keepalive of gRPC.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(timeout.Milliseconds()))
	})
}
