//go:build !linux

package httpserver

import "net"

// acceptEstablished is not available on this platform; the kernel resets connections that are not accepted.
func acceptEstablished(*net.TCPListener) []net.Conn { return nil }
