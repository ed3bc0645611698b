package httpserver

import (
	"net"

	"golang.org/x/sys/unix"
)

// limitUnsent bounds the data that the kernel accepts before it can send it. Otherwise its buffer
// grows to megabytes, of which a third must be free before a blocked write continues: a slow client
// that reads each piece in time would appear not to read at all.
func limitUnsent(c *net.TCPConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it, slow clients time out earlier
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, writePiece)
	})
}
