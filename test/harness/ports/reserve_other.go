//go:build !linux

package ports

import "net"

// reserve returns a free port; another process may take it.
func reserve() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
