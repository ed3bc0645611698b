//go:build !linux

package nodelink

import (
	"net"
	"time"
)

// limitUnacknowledged is not available on this platform; the keepalive of gRPC closes the
// connection later.
func limitUnacknowledged(*net.TCPConn, time.Duration) {}
