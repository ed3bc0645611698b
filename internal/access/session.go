package access

import (
	"net/http"
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
// connections without TLS, from setting it.
func (s *Sessions) Cookie(name string) string {
	if s.Secure {
		return "__Host-" + cookiePrefix + name
	}
	return cookiePrefix + name
}

const (
	cookiePrefix = "platform-"
	// SessionCookie and LoginCookie name the cookies of sessions and of logins in progress.
	SessionCookie = "session"
	LoginCookie   = "login"
)

// token returns the token of the session of a request; empty if it has none.
func (s *Sessions) token(r *http.Request) string {
	cookie, err := r.Cookie(s.Cookie(SessionCookie))
	if err != nil || !s.ownPage(r) {
		return ""
	}
	return cookie.Value
}

// ownPage reports whether a page of the server, or the user, sent a request.
func (s *Sessions) ownPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin" || site == "none"
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		return strings.EqualFold(origin, s.Origin)
	}
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// WithoutSession removes the cookies of the server from a request to a handler: browsers send them to
// all ports of a host.
func WithoutSession(header http.Header) {
	lines := header["Cookie"]
	var kept []string
	for _, line := range lines {
		var cookies []string
		for cookie := range strings.SplitSeq(line, ";") {
			name, _, _ := strings.Cut(strings.TrimSpace(cookie), "=")
			name = strings.TrimPrefix(name, "__Host-")
			if name != cookiePrefix+SessionCookie && name != cookiePrefix+LoginCookie {
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
