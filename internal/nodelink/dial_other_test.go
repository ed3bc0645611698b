//go:build !linux

package nodelink

import (
	"net"
	"testing"
	"time"
)

func unacknowledgedLimit(t *testing.T, _ *net.TCPConn) time.Duration {
	t.Skip("not available on this platform")
	return 0
}
