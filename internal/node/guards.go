package node

import (
	"net"
	"net/url"

	"platform/internal/access"
	"platform/internal/config"
)

// adminGuard returns the guard of the admin port.
func (n *Node) adminGuard() *access.Guard {
	c := &n.cfg.Admin
	return &access.Guard{Setting: "admin", Hosts: n.knownHosts(c.Listener, c.AllowedHosts)}
}

// ingressGuard returns the guard of the ingress. A port that only this machine can reach serves
// programs on this machine, but not web pages in its browsers.
func (n *Node) ingressGuard() *access.Guard {
	c := &n.cfg.Ingress
	g := &access.Guard{Setting: "ingress", Origins: c.AllowedOrigins, Port: tcpPort(n.listeners.admin.Addr())}
	if onLoopback(n.listeners.ingress.Addr()) {
		g.Hosts, g.LocalOrigins = n.knownHosts(c.Listener, c.AllowedHosts), len(c.AllowedOrigins) == 0
		return g
	}
	g.Hosts = []string{access.AnyOne}
	if len(g.Origins) == 0 {
		g.Origins = []string{access.AnyOne}
	}
	return g
}

// knownHosts returns the configured names of a listener.
func (n *Node) knownHosts(l config.Listener, allowed []string) []string {
	hosts := append([]string{n.cfg.NodeName, l.AdvertisedHost}, allowed...)
	if address, err := url.Parse(l.AdvertisedAddress); err == nil && address.Host != "" {
		hosts = append(hosts, address.Hostname())
	}
	return hosts
}

// onLoopback reports whether only programs on this machine can reach an address.
func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
