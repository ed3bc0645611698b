package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Rules are destinations: prefixes of addresses and patterns of host names.
type Rules struct {
	prefixes []netip.Prefix
	hosts    []string // in lower case; *.domain for all names below a domain
}

// ParseRules parses addresses (10.1.2.3), prefixes (10.0.0.0/8), host names and patterns of
// names below a domain (*.example.com).
func ParseRules(list []string) (r Rules, err error) {
	for _, text := range list {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			r.prefixes = append(r.prefixes, netip.PrefixFrom(prefix.Addr().Unmap(), unmappedBits(prefix)).Masked())
			continue
		}
		if addr, err := netip.ParseAddr(text); err == nil {
			addr = addr.Unmap().WithZone("")
			r.prefixes = append(r.prefixes, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		host := normalizeHost(text)
		name := strings.TrimPrefix(host, "*.")
		if name == "" || strings.ContainsAny(name, "*/:@ ") || strings.Trim(name, "0123456789.") == "" {
			return r, fmt.Errorf("%q is neither an address, a prefix such as 10.0.0.0/8, nor a host name such as *.example.com", text)
		}
		r.hosts = append(r.hosts, host)
	}
	return r, nil
}

// unmappedBits is the length of a prefix after its address is unmapped.
func unmappedBits(p netip.Prefix) int {
	if p.Addr().Is4In6() {
		return max(p.Bits()-96, 0)
	}
	return p.Bits()
}

func (r *Rules) empty() bool { return len(r.prefixes) == 0 && len(r.hosts) == 0 }

func (r *Rules) containsAddr(addr netip.Addr) bool {
	return slices.ContainsFunc(r.prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func (r *Rules) containsHost(host string) bool {
	return slices.ContainsFunc(r.hosts, func(pattern string) bool {
		if below, ok := strings.CutPrefix(pattern, "*"); ok {
			return strings.HasSuffix(host, below)
		}
		return host == pattern
	})
}

// normalizeHost returns a name in lower case, without the dot at its end.
func normalizeHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// parseAddr parses an address in all spellings that the C library accepts, which a proxy may
// use: 0x7f.1, 0177.0.0.1, 2130706433.
func parseAddr(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(host, ".")
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil || strings.ContainsAny(part, "_+") || strings.HasPrefix(strings.ToLower(part), "0b") || strings.HasPrefix(strings.ToLower(part), "0o") {
			return netip.Addr{}, false
		}
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if n >= 1<<bits {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
