package httpserver

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	// forwardedFor is the header to which each proxy appends the address of its client.
	forwardedFor = "X-Forwarded-For"
	// maxProxies bounds the proxies on the way of a request.
	maxProxies = 32
)

// proxies are the networks of proxies whose X-Forwarded-For is trusted.
type proxies []netip.Prefix

func (p proxies) contain(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// client returns the address of the client of a request from a proxy: the last one in X-Forwarded-For that is not of
// another proxy. The client may have invented the addresses before it. If the header is missing or invalid, it is the
// address of the last known proxy.
func (p proxies) client(proxy netip.Addr, header http.Header) netip.Addr {
	client, passed := proxy, 0
	lines := header[forwardedFor]
	for i := len(lines) - 1; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			text := rest
			if comma := strings.LastIndexByte(rest, ','); comma >= 0 {
				rest, text = rest[:comma], rest[comma+1:]
			} else {
				more = false
			}
			addr, ok := forwardedAddress(strings.TrimSpace(text))
			if !ok || addr.IsLoopback() && !client.IsLoopback() { // of another machine
				return client
			}
			client = addr
			if passed++; passed == maxProxies || !p.contain(client) {
				return client
			}
		}
	}
	return client
}

// forwardedAddress parses an element of X-Forwarded-For, which some proxies write with the port.
func forwardedAddress(text string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return addr.Unmap().WithZone(""), err == nil
}

type clientKey struct{}

// identifyClients makes the address of its client the remote address of each request that a proxy forwards.
func (l *boundedListener) identifyClients(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*conn)
		if !ok || !c.proxy {
			h.ServeHTTP(w, r)
			return
		}
		client := l.proxies.client(remoteAddr(c), r.Header)
		network := networkOf(client)
		if message := l.refusal(network, time.Now()); message != "" {
			l.refuseForwarded(w, network, message)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), clientKey{}, network))
		r.RemoteAddr = netip.AddrPortFrom(client, 0).String()
		h.ServeHTTP(w, r)
	})
}

// refuseForwarded responds to a single request, as others share its connection.
func (l *boundedListener) refuseForwarded(w http.ResponseWriter, client netip.Addr, message string) {
	l.refused.add(client, message)
	w.Header().Set("Retry-After", "1")
	l.problem.write(w, http.StatusServiceUnavailable, "RT0026", message)
}
