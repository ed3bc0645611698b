package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

func splitAddress(address string) (host [4]byte, port int, err error) {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().Is4() {
		return host, 0, fmt.Errorf("address %q: %w", address, errors.Join(err, errors.New("not IPv4")))
	}
	return a.Addr().As4(), int(a.Port()), nil
}

// probeTCP reports whether host answers a connection attempt from the namespace of the
// calling thread. It uses system calls because the standard library may open the socket
// on another thread.
func probeTCP(host [4]byte, port int, timeout time.Duration) bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	switch err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: host}); {
	case err == nil, errors.Is(err, unix.ECONNREFUSED):
		return true
	case !errors.Is(err, unix.EINPROGRESS):
		return false
	}
	for deadline := time.Now().Add(timeout); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, max(0, int(time.Until(deadline).Milliseconds())))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return false
		}
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		return err == nil && (code == 0 || unix.Errno(code) == unix.ECONNREFUSED)
	}
}
