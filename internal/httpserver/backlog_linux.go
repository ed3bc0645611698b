package httpserver

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// acceptEstablished accepts the connections that are established, up to maxEstablished.
func acceptEstablished(ln *net.TCPListener) []net.Conn {
	raw, err := ln.SyscallConn()
	if err != nil {
		return nil
	}
	var files []int
	_ = raw.Control(func(fd uintptr) {
		for len(files) < maxEstablished {
			c, _, err := unix.Accept4(int(fd), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			switch {
			case err == nil:
				files = append(files, c)
			case !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED):
				return
			}
		}
	})
	var conns []net.Conn
	for _, fd := range files {
		f := os.NewFile(uintptr(fd), "")
		if c, err := net.FileConn(f); err == nil {
			limitUnsent(c.(*net.TCPConn))
			conns = append(conns, c)
		}
		_ = f.Close()
	}
	return conns
}
