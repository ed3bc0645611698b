package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Policy is the set of permitted destinations. The zero Policy permits everything except the
// addresses that no rule can permit: link-local ones, which include cloud metadata services, other
// metadata services, multicast and unspecified addresses. It must not be changed once it is in use.
type Policy struct {
	Allow     Rules    // if it is not empty, only these destinations are permitted
	Deny      Rules    // takes precedence over Allow
	OwnPorts  []uint16 // ports of this server, refused at all addresses of this machine
	Functions []string // patterns of the ARNs of functions; empty: all
	Roles     []string // patterns of the ARNs of roles to assume; empty: all

	Resolver *net.Resolver // nil: the default one

	local localAddresses
}

// ErrForbidden is wrapped by the errors of a Policy.
var ErrForbidden = errors.New("connections to this address are not allowed")

// Refusal says why a policy does not permit a destination. It wraps ErrForbidden.
type Refusal struct {
	What   string // an address with its port, a host name, a function or a role
	Reason string // continues "What is"
	Own    bool   // What is a port of this server
}

// Error names the destination and the reason.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%v: %s is %s", ErrForbidden, r.What, r.Reason)
}

// Unwrap returns ErrForbidden.
func (r *Refusal) Unwrap() error { return ErrForbidden }

// metadataServices are cloud metadata services outside the link-local ranges.
var metadataServices = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd20:ce::254"),
	netip.MustParseAddr("100.100.100.200"),
	netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("192.0.0.192"),
}

// metadataNames are the names of metadata services. A proxy may resolve them although this
// machine cannot.
var metadataNames = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")
	teredo      = netip.MustParsePrefix("2001::/32")
)

// Check returns an error wrapping ErrForbidden for an address that must not be connected to.
func (p *Policy) Check(ap netip.AddrPort) error { return p.check(ap, false) }

// check is Check for an address of a host. named reports that Allow contains the host's name.
func (p *Policy) check(ap netip.AddrPort, named bool) error {
	addr := ap.Addr().Unmap().WithZone("")
	if reason := floor(addr); reason != "" {
		return forbidden(ap, reason)
	}
	switch {
	case slices.Contains(p.OwnPorts, ap.Port()) && p.local.contains(addr):
		return &Refusal{What: ap.String(), Reason: "this server itself", Own: true}
	case p.Deny.containsAddr(addr):
		return forbidden(ap, "denied by egress.deny")
	}
	if inner, ok := embedded(addr); ok {
		if err := p.check(netip.AddrPortFrom(inner, ap.Port()), true); err != nil {
			return err
		}
	}
	if !p.Allow.empty() && !named && !p.Allow.containsAddr(addr) {
		return forbidden(ap, "not in egress.allow")
	}
	return nil
}

func forbidden(what any, reason string) error {
	return &Refusal{What: fmt.Sprint(what), Reason: reason}
}

// checkHost returns an error for a name that is denied, and whether the name is allowed by
// itself. Other names depend on their addresses.
func (p *Policy) checkHost(host string) (named bool, err error) {
	host = normalizeHost(host)
	switch {
	case slices.Contains(metadataNames, host):
		return false, forbidden(host, "a metadata service")
	case p.Deny.containsHost(host):
		return false, forbidden(host, "denied by egress.deny")
	}
	return p.Allow.containsHost(host), nil
}

// floor returns why no rule permits an address, "" if one may.
func floor(addr netip.Addr) string {
	switch {
	case addr.IsUnspecified(), thisNetwork.Contains(addr):
		return "an unspecified address"
	case addr.IsLinkLocalUnicast():
		return "a link-local address"
	case addr.IsMulticast(), addr == broadcast:
		return "a multicast address"
	case slices.Contains(metadataServices, addr):
		return "a metadata service"
	}
	return ""
}

// transitions are the ranges of IPv6 addresses that contain an IPv4 address, to which a
// gateway or the kernel may translate them, and the position of its first byte.
var transitions = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated, RFC 2765
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64 of a site, with the usual /96
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// embedded returns the IPv4 address in a transition address.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() || addr.IsLoopback() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	for _, t := range transitions {
		if t.prefix.Contains(addr) {
			return netip.AddrFrom4([4]byte(b[t.at:])), true
		}
	}
	if teredo.Contains(addr) {
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	if b[8]&^3 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe { // ISATAP
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}

// localAddressesAge is how long the addresses of the interfaces are used.
const localAddressesAge = 10 * time.Second

// localAddresses are the addresses of this machine.
type localAddresses struct {
	read atomic.Pointer[interfaceAddresses]
}

type interfaceAddresses struct {
	at    time.Time
	addrs []netip.Addr
}

func (l *localAddresses) contains(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	known := l.read.Load()
	if known == nil || time.Since(known.at) > localAddressesAge {
		known = &interfaceAddresses{at: time.Now(), addrs: readInterfaceAddresses()}
		l.read.Store(known)
	}
	return slices.Contains(known.addrs, addr)
}

// readInterfaceAddresses returns the addresses of the interfaces of this machine; none if they
// cannot be read.
func readInterfaceAddresses() (addrs []netip.Addr) {
	prefixes, _ := net.InterfaceAddrs()
	for _, prefix := range prefixes {
		ip, ok := prefix.(*net.IPNet)
		if !ok {
			continue
		}
		if own, ok := netip.AddrFromSlice(ip.IP); ok {
			addrs = append(addrs, own.Unmap())
		}
	}
	return addrs
}

// CheckFunction returns an error wrapping ErrForbidden for a function, or a role to invoke it
// with, that is not allowed. The role may be empty.
func (p *Policy) CheckFunction(arn, role string) error {
	switch {
	case len(p.Functions) > 0 && !matchesAny(p.Functions, arn):
		return forbidden("function "+arn, "not in egress.functions")
	case role != "" && len(p.Roles) > 0 && !matchesAny(p.Roles, role):
		return forbidden("role "+role, "not in egress.roles")
	}
	return nil
}

func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, text) })
}

// matches reports whether a text matches a pattern in which * stands for any characters.
func matches(pattern, text string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// resolveTimeout bounds the local resolution of a name that a proxy resolves as well.
const resolveTimeout = 2 * time.Second

// CheckName checks the host and port of a request that a proxy makes: the name, and the
// addresses that this machine knows for it. The proxy may know others. A name without a known
// address is permitted, unless Allow does not contain it: only the proxy may be able to
// resolve it.
func (p *Policy) CheckName(ctx context.Context, host string, port uint16) error {
	named, err := p.checkHost(host)
	if err != nil {
		return err
	}
	if addr, ok := parseAddr(host); ok {
		return p.check(netip.AddrPortFrom(addr, port), named)
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	resolver := p.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil && !named && !p.Allow.empty() {
		return forbidden(host, "not in egress.allow")
	}
	for _, addr := range addrs {
		if err := p.check(netip.AddrPortFrom(addr, port), named); err != nil {
			return err
		}
	}
	return nil
}
