package access

import (
	"net/http"
	"net/url"
	"strings"
)

// Sessions are the logins of browsers, which have the token of a session in a cookie.
type Sessions struct {
	// Origin is that of the pages whose requests are made in the name of the user. Browsers
	// send cookies without being asked, so requests of other pages are not.
	Origin string
	// Secure reports that browsers reach the server by TLS only.
	Secure bool
}

// Cookie returns the name of a cookie. With TLS its prefix keeps hosts of the same domain, and
// connections without TLS, from setting it. Ports of a host share their cookies, so the name of a
// cookie contains the port.
func (s *Sessions) Cookie(name string) string {
	name = cookiePrefix + name
	if u, err := url.Parse(s.Origin); err == nil && u.Port() != "" {
		name += "-" + u.Port()
	}
	if s.Secure {
		return hostPrefix + name
	}
	return name
}

const (
	hostPrefix   = "__Host-"
	cookiePrefix = "platform-"
	// SessionCookie and LoginCookie name the cookies of sessions and of logins in progress.
	SessionCookie = "session"
	LoginCookie   = "login"
)

// token returns the token of the session of a request; empty if it has none.
func (s *Sessions) token(r *http.Request) string {
	cookie, err := r.Cookie(s.Cookie(SessionCookie))
	if err != nil || !s.OwnPage(r) {
		return ""
	}
	return cookie.Value
}

// OwnPage reports whether a page of the server, or the user, sent a request.
func (s *Sessions) OwnPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin" || site == "none"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		return strings.EqualFold(origin, s.Origin)
	}
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// ownCookie reports whether a name is one of Sessions.Cookie, of this or another server.
func ownCookie(name string) bool {
	name = strings.TrimPrefix(name, hostPrefix)
	for _, own := range []string{cookiePrefix + SessionCookie, cookiePrefix + LoginCookie} {
		port, ok := strings.CutPrefix(name, own+"-")
		if name == own || ok && strings.Trim(port, "0123456789") == "" {
			return true
		}
	}
	return false
}

// WithoutSession removes the cookies of servers from a request to a handler: browsers send them to
// all ports of a host.
func WithoutSession(header http.Header) {
	lines := header["Cookie"]
	var kept []string
	for _, line := range lines {
		var cookies []string
		for cookie := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(cookie), "=")
			if !ownCookie(name) {
				cookies = append(cookies, strings.TrimSpace(cookie))
			}
		}
		if len(cookies) > 0 {
			kept = append(kept, strings.Join(cookies, "; "))
		}
	}
	if len(lines) > 0 {
		header["Cookie"] = kept
	}
	if len(kept) == 0 {
		delete(header, "Cookie")
	}
}
