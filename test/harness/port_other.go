//go:build !linux

package harness

import "net"

// keepPort returns a port that was free a moment ago.
func keepPort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
