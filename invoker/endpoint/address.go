package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Address is the address of an endpoint and its HTTP version, or a function.
type Address struct {
	Scheme    string // http or https
	Authority string // host, and the port if the URI has one; name and version of a function
	HTTP11    bool
	Function  *Function // nil for endpoints that speak HTTP
	base      string    // path without trailing slash
	query     string    // with question mark, or empty
	host      string    // to dial: host and port
	key       string    // connections with the same key are shared
}

// errAddress is wrapped by the errors of ParseAddress.
var errAddress = errors.New("invalid endpoint address")

// ParseAddress parses the URI of an endpoint.
func ParseAddress(uri string, http11 bool) (*Address, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAddress, err)
	}
	a := &Address{Scheme: strings.ToLower(u.Scheme), Authority: u.Host, HTTP11: http11}
	port := u.Port()
	switch a.Scheme {
	case "http":
		port = orElse(port, "80")
	case "https":
		port = orElse(port, "443")
	default:
		return nil, fmt.Errorf("%w: scheme %q is neither http nor https", errAddress, u.Scheme)
	}
	if u.Hostname() == "" || !httpguts.ValidHostHeader(u.Host) {
		return nil, fmt.Errorf("%w: %q has no usable host", errAddress, uri)
	}
	a.base = strings.TrimRight(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		a.query = "?" + u.RawQuery
	}
	a.host = net.JoinHostPort(u.Hostname(), port)
	a.key = fmt.Sprint(a.Scheme, " ", a.host, " ", http11)
	return a, nil
}

// Local reports whether the endpoint is addressed by a name of the machine or container itself.
func (a *Address) Local() bool {
	host, _, _ := net.SplitHostPort(a.host)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Path is the request path of suffix, which begins with a slash, below the endpoint's base
// path.
func (a *Address) Path(suffix string) string { return a.base + suffix + a.query }

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
