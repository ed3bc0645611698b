package node

import (
	"net"
	"net/http"
	"net/url"
	"slices"

	"platform/internal/access"
	"platform/internal/config"
	"platform/metadata"
)

// adminGuard returns the guard of the admin port.
func (a *accessControl) adminGuard() *access.Guard {
	c := &a.cfg.Admin
	return &access.Guard{Setting: "admin", Hosts: a.knownHosts(c.Listener, c.AllowedHosts)}
}

// ingressGuard returns the guard of the ingress. A port that only this machine can reach serves
// programs on this machine, but not web pages in its browsers.
func (a *accessControl) ingressGuard() *access.Guard {
	c := &a.cfg.Ingress
	g := &access.Guard{Setting: "ingress", Origins: c.AllowedOrigins, Port: tcpPort(a.listeners.admin.Addr())}
	if onLoopback(a.listeners.ingress.Addr()) {
		g.Hosts, g.LocalOrigins = a.knownHosts(c.Listener, c.AllowedHosts), len(c.AllowedOrigins) == 0
		return g
	}
	g.Hosts = []string{access.AnyOne}
	if len(g.Origins) == 0 {
		g.Origins = []string{access.AnyOne}
	}
	return g
}

// knownHosts returns the configured names of a listener.
func (a *accessControl) knownHosts(l config.Listener, allowed []string) []string {
	hosts := append([]string{a.cfg.NodeName, l.AdvertisedHost}, allowed...)
	if address, err := url.Parse(l.AdvertisedAddress); err == nil && address.Host != "" {
		hosts = append(hosts, address.Hostname())
	}
	return hosts
}

// membersOnly serves clients other than nodes only GET /health, if nodes must authenticate.
func (a *accessControl) membersOnly(handler http.Handler, store *metadata.Store) http.Handler {
	if a.cfg.Security.NodeTLS.Mode != config.TLSRequire {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if node, _ := r.Context().Value(nodeKey{}).(string); !isMember(store, node) && (r.Method != http.MethodGet || r.URL.Path != "/health") {
			access.Reject(w, http.StatusForbidden, "this port requires TLS with a certificate of a node of the cluster; metrics and profiles are at the admin port as well")
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// isMember reports whether an authenticated node belongs to the cluster: a removed one still has
// its certificate.
func isMember(store *metadata.Store, name string) bool {
	if name == "" {
		return false
	}
	return slices.ContainsFunc(store.Nodes(), func(known metadata.Node) bool { return known.Name == name && !known.Removed })
}

// nodeKey is the key of the name of the authenticated node in the context of a connection.
type nodeKey struct{}

// onLoopback reports whether only programs on this machine can reach an address.
func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
