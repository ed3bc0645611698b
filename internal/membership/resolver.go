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
	// resolveAfter is how old the address of a name may get before the next packet
	// asks again.
	resolveAfter = time.Second
	// resolveTimeout bounds one question.
	resolveTimeout = 5 * time.Second
)

// resolver turns the names in addresses into IP addresses for packets. It never makes
// a sender wait: a packet goes to the last known address while the name is asked for
// in the background, because a name server that hangs must not stop the gossip with
// all other nodes.
type resolver struct {
	ctx    context.Context
	wg     *sync.WaitGroup
	lookup func(ctx context.Context, host string) ([]string, error)
	only4  bool // the socket is of IPv4 only

	// mu covers hosts and their contents.
	mu    sync.Mutex
	hosts map[string]*resolved
}

// resolved is what is known of one name.
type resolved struct {
	addr      netip.Addr // not valid before the first answer
	preferred netip.Addr // where a stream got through
	asked     time.Time
	asking    bool
}

// packetAddress returns where to send a packet for hostport. It returns false as long
// as the name has never been resolved.
func (r *resolver) packetAddress(hostport string) (netip.AddrPort, bool) {
	host, port, ok := splitPort(hostport)
	if !ok {
		return netip.AddrPort{}, false
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip.Unmap(), port), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.host(host)
	if !h.asking && time.Since(h.asked) > resolveAfter && r.ctx.Err() == nil {
		h.asking = true
		r.wg.Go(func() { r.ask(host) })
	}
	return netip.AddrPortFrom(h.addr, port), h.addr.IsValid()
}

// host returns the entry of a name. The caller holds mu.
func (r *resolver) host(name string) *resolved {
	h := r.hosts[name]
	if h == nil {
		h = &resolved{}
		r.hosts[name] = h
	}
	return h
}

func (r *resolver) ask(name string) {
	addrs, err := r.addresses(r.ctx, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.host(name)
	h.asking, h.asked = false, time.Now()
	if err != nil {
		return // the old address is the best guess
	}
	h.addr = addrs[0]
	if slices.Contains(addrs, h.preferred) {
		h.addr = h.preferred
	}
}

// addresses returns what a host stands for that the socket can reach, at least one
// address.
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
		return nil, fmt.Errorf("%s has no address that can be reached", host)
	}
	return addrs, nil
}

// reached notes the address at which a stream to hostport got through. Packets go
// there as long as the name has that address.
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
	h := r.host(host)
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

// isIPv4 tells whether a socket is bound to an IPv4 address.
func isIPv4(a net.Addr) bool {
	udp, ok := a.(*net.UDPAddr)
	return ok && udp.IP.To4() != nil
}
