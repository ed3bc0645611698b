package membership

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// resolveAfter is the age from which the next packet refreshes a resolved address.
	resolveAfter = time.Second
	// resolveTimeout bounds one lookup.
	resolveTimeout = 5 * time.Second
)

// resolver resolves host names for packets. It never blocks the sender: packets go to the
// last known address while the name is resolved in the background, because a hanging name
// server must not stop the gossip with all other nodes.
type resolver struct {
	wg     *sync.WaitGroup
	lookup func(ctx context.Context, host string) ([]string, error)
	only4  bool // the socket is IPv4 only

	// mu covers hosts and their contents.
	mu    sync.Mutex
	hosts map[string]*resolved
}

// resolved is the cached resolution of one name.
type resolved struct {
	addr        netip.Addr // invalid before the first successful lookup
	preferred   netip.Addr // of the last successful stream
	refreshedAt time.Time
	refreshing  bool
}

// packetAddress returns the address for packets to hostport. It returns false until the
// name has been resolved once, which ctx limits.
func (r *resolver) packetAddress(ctx context.Context, hostport string) (netip.AddrPort, bool) {
	host, port, ok := splitPort(hostport)
	if !ok {
		return netip.AddrPort{}, false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), port), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hostLocked(host)
	if !h.refreshing && time.Since(h.refreshedAt) > resolveAfter && ctx.Err() == nil {
		h.refreshing = true
		r.wg.Go(func() { r.refresh(ctx, host) })
	}
	return netip.AddrPortFrom(h.addr, port), h.addr.IsValid()
}

// hostLocked returns the cache entry of a name.
func (r *resolver) hostLocked(name string) *resolved {
	h := r.hosts[name]
	if h == nil {
		h = &resolved{}
		r.hosts[name] = h
	}
	return h
}

func (r *resolver) refresh(ctx context.Context, name string) {
	addrs, err := r.addresses(ctx, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hostLocked(name)
	h.refreshing, h.refreshedAt = false, time.Now()
	if err != nil {
		return // keep the last known address
	}
	h.addr = addrs[0]
	if slices.Contains(addrs, h.preferred) {
		h.addr = h.preferred
	}
}

// addresses returns the addresses of a host that the socket can reach, at least one.
func (r *resolver) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	texts, err := r.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, text := range texts {
		if ip, err := netip.ParseAddr(text); err == nil && (!r.only4 || ip.Unmap().Is4()) {
			addrs = append(addrs, ip.Unmap())
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("host %s has no IPv4 address, which the node port requires", host)
	}
	return addrs, nil
}

// reached records the remote address of a successful stream to hostport. Packets are sent
// there as long as the name resolves to it.
func (r *resolver) reached(hostport string, remote net.Addr) {
	tcp, ok := remote.(*net.TCPAddr)
	host, _, valid := splitPort(hostport)
	if !ok || !valid {
		return
	}
	ip := tcp.AddrPort().Addr().Unmap()
	if _, err := netip.ParseAddr(host); err == nil || (r.only4 && ip.Is6()) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.hostLocked(host)
	h.addr, h.preferred = ip, ip
}

func splitPort(hostport string) (host string, port uint16, ok bool) {
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		return "", 0, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, uint16(n), err == nil
}

// isIPv4 reports whether a socket is bound to an IPv4 address.
func isIPv4(a net.Addr) bool {
	udp, ok := a.(*net.UDPAddr)
	return ok && udp.IP.To4() != nil
}
