package ports

import (
	"fmt"
	"syscall"
)

// reserve binds a socket that does not listen and stays open until this process exits. A listener
// can bind to its port explicitly because both sockets set SO_REUSEADDR, as Go's listeners do.
func reserve() (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	return bound.(*syscall.SockaddrInet4).Port, nil
}
