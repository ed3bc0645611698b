package ingress

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"platform/internal/access"
)

// probed replaces the handlers of all routes by one that only reports that it was reached.
func probed(s *Server) (paths []string) {
	probe := echo.New()
	for _, r := range s.router.Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		paths = append(paths, r.Path)
		probe.Match(knownMethods, r.Path, func(c echo.Context) error {
			c.Response().Header().Set("X-Reached", "yes")
			return c.NoContent(http.StatusOK)
		})
	}
	s.router = probe
	return paths
}

// reached reports whether the handler of a route would run.
func reached(s *Server, method, path string, change func(*http.Request)) bool {
	r := httptest.NewRequest(method, "http://localhost:8080"+strings.NewReplacer(":", "", "/*", "/Greeter/greet").Replace(path), nil)
	change(r)
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r)
	return w.Header().Get("X-Reached") != ""
}

func TestPagesOfOtherSitesReachNoHandlerOnLoopback(t *testing.T) {
	s := testServer(t, Config{Guard: &access.Guard{Setting: "ingress", LocalOrigins: true}}, &fakeInvocations{})
	paths := probed(s)
	require.Greater(t, len(paths), 20)
	for _, path := range paths {
		// A GET invokes handlers as well.
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			require.True(t, reached(s, method, path, func(*http.Request) {}), path)
			require.Equal(t, strings.HasSuffix(path, healthPath), reached(s, method, path, func(r *http.Request) { r.Host = "evil.example:8080" }), "%s with a foreign host", path)
			for _, headers := range [][2]string{
				{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Sec-Fetch-Site", "cross-site"},
			} {
				require.False(t, reached(s, method, path, func(r *http.Request) { r.Header.Set(headers[0], headers[1]) }), "%s %s with %v", method, path, headers)
			}
			for _, headers := range [][2]string{
				{"Origin", "http://localhost:3000"}, {"Origin", "http://127.0.0.1:9070"}, {"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "none"},
			} {
				require.True(t, reached(s, method, path, func(r *http.Request) { r.Header.Set(headers[0], headers[1]) }), "%s %s with %v", method, path, headers)
			}
		}
	}
}

// The health route is served under any name; handlers named health are not.
func TestHandlersNamedHealthAreGuarded(t *testing.T) {
	s := testServer(t, Config{Guard: &access.Guard{Setting: "ingress", LocalOrigins: true}}, &fakeInvocations{})
	probed(s)
	for path, want := range map[string]bool{
		"/platform/health": true, "/restate/health": true, "/Greeter/health": false, "/Counter/k/health": false, "/platform/call/Greeter/health": false,
	} {
		require.Equal(t, want, reached(s, http.MethodPost, path, func(r *http.Request) { r.Host = "evil.example:8080" }), path)
	}
}

// With credentials a page could act on behalf of its visitor, so origins must be trusted by name.
func TestCredentialsAreForTrustedOriginsOnly(t *testing.T) {
	for _, origins := range [][]string{nil, {"*"}, {"https://app.example.com"}, {"https://app.example.com", "*"}} {
		for _, local := range []bool{false, true} {
			s := testServer(t, Config{Guard: &access.Guard{Hosts: []string{"*"}, Origins: origins, LocalOrigins: local}}, &fakeInvocations{})
			for _, origin := range []string{"https://evil.example", "null", "https://app.example.com.evil.example", "*"} {
				for _, method := range []string{"OPTIONS", "GET", "POST"} {
					h := do(s, method, "/Greeter/greet", "", "origin: "+origin, "access-control-request-method: POST").Header()
					require.Empty(t, h.Get("Access-Control-Allow-Credentials"), origin)
					require.Equal(t, slices.Contains(origins, "*"), h.Get("Access-Control-Allow-Origin") == "*", origin)
					require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
				}
			}
		}
	}
}
