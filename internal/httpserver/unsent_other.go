//go:build !linux

package httpserver

import "net"

// limitUnsent is not available on this platform; slow clients time out earlier.
func limitUnsent(*net.TCPConn) {}
