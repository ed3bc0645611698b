package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// AnyOne in a list of hosts or origins allows all of them.
const AnyOne = "*"

// Guard rejects requests that a web page of another site sends through the browser of a user who
// can reach the port. The zero value of each field is its strictest setting.
type Guard struct {
	// Setting is the section of the configuration that rejections name, such as admin.
	Setting string
	// Hosts are names under which the server can be addressed, without ports, in addition to
	// addresses and to names that cannot be registered publicly.
	Hosts []string
	// Origins are the origins of pages that may send requests, in addition to those of the
	// same origin.
	Origins []string
	// LocalOrigins allows the pages of all servers on this machine.
	LocalOrigins bool
	// Port is the port of pages that may send requests to their own host; 0: none.
	Port int
}

// Rejection is the reason for which a Guard rejects a request.
type Rejection struct{ Message string }

// Error implements error.
func (r *Rejection) Error() string { return r.Message }

// CheckHost returns a *Rejection if the request was sent to a name that is not known to belong to
// this server: the owner of another name can resolve it to the server's address, and its
// pages would then be of the same origin (DNS rebinding).
func (g *Guard) CheckHost(r *http.Request) error {
	host := hostname(r.Host)
	if slices.Contains(g.Hosts, AnyOne) || unregistrable(host) ||
		slices.ContainsFunc(g.Hosts, func(known string) bool { return strings.EqualFold(hostname(known), host) }) {
		return nil
	}
	return &Rejection{fmt.Sprintf("the request was sent to the host %q, which is not known to be this server; "+
		"use its address or localhost, or add the name to %s.allowed-hosts", shortened(r.Host), g.Setting)}
}

// CheckOrigin returns a *Rejection if a page of an origin that is not allowed sent the request.
// Clients other than browsers send no origin and are not affected. Reads are rejected as well, since
// a GET can invoke a handler.
func (g *Guard) CheckOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" {
		// Browsers omit the origin of pages when they navigate or load an image. Another port is of
		// the same site, and so are all hosts of a domain.
		site := r.Header.Get("Sec-Fetch-Site")
		if site != "cross-site" && (site != "same-site" || g.LocalOrigins) || slices.Contains(g.Origins, AnyOne) {
			return nil
		}
		return &Rejection{fmt.Sprintf("a web page of another site sent the request; to allow the requests of all sites, set %s.allowed-origins to [\"*\"]", g.Setting)}
	}
	if g.AllowsOrigin(r, origin) {
		return nil
	}
	return &Rejection{fmt.Sprintf("a web page of the origin %q sent the request; to allow its requests, add it to %s.allowed-origins", shortened(origin), g.Setting)}
}

// AllowsOrigin reports whether pages of an origin may send the request and read its response.
func (g *Guard) AllowsOrigin(r *http.Request, origin string) bool {
	return slices.Contains(g.Origins, AnyOne) || g.TrustsOrigin(r, origin)
}

// TrustsOrigin reports whether an origin is allowed other than by AnyOne.
func (g *Guard) TrustsOrigin(r *http.Request, origin string) bool {
	if slices.Contains(g.Origins, origin) && origin != AnyOne {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false // such as null, the origin of sandboxed pages and files
	}
	if strings.EqualFold(u.Host, r.Host) || g.LocalOrigins && isLocal(u.Hostname()) {
		return true
	}
	return g.Port != 0 && u.Port() == fmt.Sprint(g.Port) && strings.EqualFold(u.Hostname(), hostname(r.Host))
}

// hostname returns a host without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// privateSuffixes are those of names that public name servers never resolve.
var privateSuffixes = []string{".localhost", ".internal", ".svc", ".svc.cluster.local"}

// unregistrable reports whether a host name cannot be registered publicly: addresses, names without
// a dot, and names below reserved domains.
func unregistrable(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(host)
	return !strings.Contains(host, ".") || slices.ContainsFunc(privateSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

func isLocal(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.ToLower(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Confidential reports whether requests to an address cannot be read on the way: it uses TLS, or
// is on this machine.
func Confidential(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLocal(u.Hostname()))
}

// shortened limits the length of request text that a message quotes.
func shortened(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}
