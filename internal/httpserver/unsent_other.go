//go:build !linux

package httpserver

import "net"

// limitUnsent is not available on this platform; slow clients end earlier.
func limitUnsent(*net.TCPConn) {}
