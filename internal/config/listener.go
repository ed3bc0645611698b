package config

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"platform/internal/errcode"
)

// Listener is a TCP address that the server listens on, and the address it advertises.
type Listener struct {
	BindIP            string `key:"bind-ip" help:"IP address to listen on; :: listens on all addresses, IPv6 and IPv4, 0.0.0.0 on those of IPv4 (default: 127.0.0.1, but :: on a node of a cluster, and if an address is advertised)"`
	BindPort          int    `key:"bind-port" help:"port to listen on, 0 for a free one"`
	BindAddress       string `key:"bind-address" help:"address and port to listen on, instead of bind-ip and bind-port"`
	AdvertisedHost    string `key:"advertised-host" help:"host name or address at which others reach this node"`
	AdvertisedAddress string `key:"advertised-address" help:"complete address at which others reach this listener"`
}

// Loopback is the address of listeners that are not configured for other machines.
const Loopback = "127.0.0.1"

// allAddresses is the address to listen on all interfaces.
const allAddresses = "::"

// advertised reports whether the listener advertises an address.
func (l *Listener) advertised() bool { return l.AdvertisedHost != "" || l.AdvertisedAddress != "" }

// inherit copies the values that a section does not set from the listener of the node.
func (l *Listener) inherit(node Listener) {
	if l.BindIP == "" {
		l.BindIP = node.BindIP
	}
	if l.AdvertisedHost == "" {
		l.AdvertisedHost = node.AdvertisedHost
	}
}

// Address returns the address to listen on.
func (l Listener) Address() string {
	if l.BindAddress != "" {
		return l.BindAddress
	}
	return net.JoinHostPort(l.BindIP, strconv.Itoa(l.BindPort))
}

// networkOf returns the network to listen on. With "tcp", 0.0.0.0 would include IPv6.
func networkOf(address string) string {
	if ap, err := netip.ParseAddrPort(address); err == nil && ap.Addr().Is4() {
		return "tcp4"
	}
	return "tcp"
}

// Listen opens the listener. The unspecified IPv6 address serves IPv4 as well, and is replaced by
// 0.0.0.0 on machines without IPv6. A failure carries RT0004 and the section's name: "" for the
// node's own listener, else "ingress" or "admin".
func (l Listener) Listen(ctx context.Context, section string) (net.Listener, error) {
	var lc net.ListenConfig
	address := l.Address()
	listener, err := lc.Listen(ctx, networkOf(address), address)
	if port, any6 := strings.CutPrefix(address, "[::]:"); any6 && noIPv6(err) {
		listener, err = lc.Listen(ctx, "tcp4", "0.0.0.0:"+port)
	}
	if err != nil {
		name := strings.TrimPrefix(section+".bind-port", ".")
		return nil, errcode.New(errcode.RT0004, "listen on %s (%s): %w", address, name, cause(err))
	}
	return listener, nil
}

func noIPv6(err error) bool {
	return errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)
}

// cause strips the operation and the address, which the message already contains.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// AdvertisedURL returns the address for others, given the address that was bound (it has the port
// if a free one was requested): http://host:port/.
func (l Listener) AdvertisedURL(bound net.Addr) string { return l.advertisedURL(bound, "http") }

func (l Listener) advertisedURL(bound net.Addr, scheme string) string {
	if l.AdvertisedAddress != "" {
		return strings.TrimSuffix(l.AdvertisedAddress, "/") + "/"
	}
	host, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return scheme + "://" + bound.String() + "/"
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if l.AdvertisedHost != "" {
		host = l.AdvertisedHost
	}
	return scheme + "://" + net.JoinHostPort(host, port) + "/"
}

// HostPort returns the host:port of an address, which may be a URL.
func HostPort(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	address, _, _ = strings.Cut(address, "/")
	return address
}

// Prefixes returns the networks of a list of addresses and prefixes. Prefixes of all addresses are invalid.
func Prefixes(list []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if addr, notAddr := netip.ParseAddr(text); notAddr == nil && addr.Zone() == "" {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || prefix.Addr().Is4In6() || prefix.Bits() == 0 {
			return nil, fmt.Errorf("expected an address or a prefix such as 10.0.0.0/8, got %q", text)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}
