package admin

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/access"
)

// reaches reports for a request to each route whether its handler would run.
func (w *testServer) reaches(t *testing.T, r rest.Route, change func(*http.Request)) (status int, message string, reached bool) {
	t.Helper()
	request := httptest.NewRequest(r.Method, "http://localhost:9070"+strings.ReplaceAll(r.Path, ":", ""), strings.NewReader("{}"))
	change(request)
	recorder := httptest.NewRecorder()
	w.Handler().ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String(), recorder.Header().Get("X-Reached") != ""
}

// guardedServer is a server whose handlers only report that they were reached.
func guardedServer(t *testing.T) *testServer {
	w := newTestServer(t, func(c *Config) {
		c.Guard = &access.Guard{Setting: "admin"}
		c.AllowedOrigins = []string{"https://ops.example.com"}
	})
	w.probe()
	return w
}

// probe replaces the handlers of all routes by one that only reports that it was reached.
func (w *testServer) probe() {
	routes := w.routes()
	for i := range routes {
		routes[i].Handle = func(c echo.Context) error {
			c.Response().Header().Set("X-Reached", "yes")
			return c.NoContent(http.StatusOK)
		}
	}
	w.router = w.newRouter(routes)
}

func TestPagesOfOtherSitesReachNoRoute(t *testing.T) {
	w := guardedServer(t)
	mutating := 0
	for _, r := range w.routes() {
		name := r.Method + " " + r.Path
		_, _, reached := w.reaches(t, r, func(*http.Request) {})
		require.True(t, reached, name)

		status, message, reached := w.reaches(t, r, func(r *http.Request) { r.Host = "evil.example:9070" })
		require.Equal(t, r.Path == healthPath, reached, "%s with a foreign host", name)
		if !reached {
			require.Equal(t, http.StatusForbidden, status, name)
			require.Contains(t, message, "admin.allowed-hosts", name)
		}

		if r.Method == http.MethodGet {
			continue
		}
		mutating++
		for _, headers := range []map[string]string{
			{"Origin": "https://evil.example"},
			{"Origin": "null"},
			{"Origin": "http://localhost:3000"},
			{"Sec-Fetch-Site": "cross-site"},
			{"Sec-Fetch-Site": "same-site"},
			{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
		} {
			status, message, reached := w.reaches(t, r, func(r *http.Request) {
				for k, v := range headers {
					r.Header.Set(k, v)
				}
			})
			require.False(t, reached, "%s with %v", name, headers)
			require.Equal(t, http.StatusForbidden, status, name)
			require.Contains(t, message, "admin.allowed-origins", name)
		}
		for _, headers := range []map[string]string{
			{"Origin": "http://localhost:9070"},
			{"Origin": "http://localhost:9070", "Sec-Fetch-Site": "same-origin"},
			{"Origin": "https://ops.example.com", "Sec-Fetch-Site": "cross-site"},
		} {
			_, _, reached := w.reaches(t, r, func(r *http.Request) {
				for k, v := range headers {
					r.Header.Set(k, v)
				}
			})
			require.True(t, reached, "%s with %v", name, headers)
		}
	}
	require.Greater(t, mutating, 30)
}

func TestResponsesForbidContentSniffing(t *testing.T) {
	w := newTestServer(t, nil)
	for _, path := range []string{"/services", "/nowhere", "/deployments/x"} {
		require.Equal(t, "nosniff", w.ask(t, "GET", path, "").Header.Get("X-Content-Type-Options"), path)
	}
}
