package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Guard decides which addresses may be connected to, after name resolution: registering an
// endpoint must not make the server send requests to hosts that only the server can reach.
// The zero Guard refuses addresses that no endpoint has: link-local ones, which include
// cloud metadata services, multicast and unspecified ones.
type Guard struct {
	Allow    []netip.Prefix // always allowed
	Deny     []netip.Prefix // refused as well
	OwnPorts []uint16       // of this server; refused on loopback addresses
}

// ErrForbidden is wrapped by the errors of Check.
var ErrForbidden = errors.New("connections to this address are not allowed")

// metadataServices are cloud metadata services outside the link-local ranges.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("192.0.0.192"),
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
	nat64       = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour   = netip.MustParsePrefix("2002::/16")
	compatible  = netip.MustParsePrefix("::/96")
)

// Check returns an error wrapping ErrForbidden for an address that must not be connected
// to.
func (g *Guard) Check(ap netip.AddrPort) error {
	addr := ap.Addr().Unmap().WithZone("")
	if contains(g.Allow, addr) {
		return nil
	}
	if reason := g.refusal(addr, ap.Port()); reason != "" {
		return fmt.Errorf("%w: %s is %s", ErrForbidden, ap, reason)
	}
	if inner, ok := embedded(addr); ok {
		return g.Check(netip.AddrPortFrom(inner, ap.Port()))
	}
	return nil
}

func (g *Guard) refusal(addr netip.Addr, port uint16) string {
	switch {
	case addr.IsUnspecified(), thisNetwork.Contains(addr):
		return "an unspecified address"
	case addr.IsLinkLocalUnicast():
		return "a link-local address"
	case addr.IsMulticast(), addr == broadcast:
		return "a multicast address"
	case slices.Contains(metadataServices, addr):
		return "a metadata service"
	case contains(g.Deny, addr):
		return "denied by configuration"
	case addr.IsLoopback() && slices.Contains(g.OwnPorts, port):
		return "this server itself"
	}
	return ""
}

// embedded returns the IPv4 address in a transition address.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr), compatible.Contains(addr) && !addr.IsLoopback():
		return netip.AddrFrom4([4]byte(b[12:])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// control is called by net.Dialer with each resolved address right before connecting, so
// that a name cannot resolve to another address in between.
func (g *Guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return g.Check(ap)
}
