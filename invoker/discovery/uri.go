package discovery

import (
	"net/url"
	"strings"
)

// NormalizeURI returns the canonical form of an endpoint's address: lower case scheme and
// host, no default port, a trailing slash.
func NormalizeURI(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || !u.IsAbs() || u.Hostname() == "" {
		return "", invalid("field 'uri' is invalid: %q is not absolute; specify a scheme and a host, as in http://localhost:9080", raw)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", invalid("field 'uri' is invalid: scheme %q is neither http nor https", u.Scheme)
	case u.User != nil:
		return "", invalid("field 'uri' is invalid: it contains credentials; use additional_headers instead")
	}
	u.Host = strings.ToLower(u.Host)
	if u.Scheme == "http" {
		u.Host = strings.TrimSuffix(u.Host, ":80")
	} else {
		u.Host = strings.TrimSuffix(u.Host, ":443")
	}
	u.Fragment = ""
	path := strings.TrimRight(u.EscapedPath(), "/") + "/"
	if u.Path, err = url.PathUnescape(path); err != nil {
		return "", invalid("field 'uri' is invalid: %v", err)
	}
	u.RawPath = path
	return u.String(), nil
}
