package dev

import (
	"cmp"
	"net"
	"os"

	"platform/internal/access"
)

const tokenVariable = "PLATFORM_ADMIN_TOKEN"

// adminToken returns the token of the administrator for nodes that listen on an address: a new
// one unless the environment has one, and none if only this machine reaches the nodes.
func adminToken(ip string) string {
	parsed := net.ParseIP(ip)
	if parsed == nil || parsed.IsLoopback() || os.Getenv("PLATFORM_SECURITY__MODE") == "open" {
		return ""
	}
	return cmp.Or(os.Getenv(tokenVariable), access.NewSecret().Text)
}
