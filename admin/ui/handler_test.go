package ui

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const page = `<!doctype html><script src="/ui/app.js?v=__VERSION__"></script>`

func testHandler(t *testing.T, ingress string) *Handler {
	t.Helper()
	script := make([]byte, 10_000)
	for i := range script {
		script[i] = 'a'
	}
	h, err := newHandler(fstest.MapFS{
		"index.html": {Data: []byte(page)}, "app.js": {Data: script}, "icon.svg": {Data: []byte("<svg/>")},
	}, Options{Ingress: func(*http.Request) string { return ingress }})
	require.NoError(t, err)
	return h
}

func get(h http.Handler, target string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(body)
}

func TestUnknownPathsAreThePage(t *testing.T) {
	h := testHandler(t, "")
	for _, path := range []string{"/ui/", "/ui/index.html", "/ui/invocations", "/ui/invocations/inv_1?tab=x", "/ui/a/b/c.d"} {
		answer := get(h, path)
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		require.Equal(t, "text/html; charset=utf-8", answer.Header.Get("Content-Type"))
		require.Equal(t, "no-cache", answer.Header.Get("Cache-Control"))
		require.Equal(t, `<!doctype html><script src="/ui/app.js?v=`+h.version+`"></script>`, text(t, answer))
	}
}

func TestRedirects(t *testing.T) {
	h := testHandler(t, "")
	for path, target := range map[string]string{"/": "/ui/", "/ui": "/ui/", "/ui?a=b": "/ui/?a=b"} {
		answer := get(h, path)
		require.Equal(t, http.StatusPermanentRedirect, answer.StatusCode)
		require.Equal(t, target, answer.Header.Get("Location"))
	}
}

func TestServes(t *testing.T) {
	for _, c := range []struct {
		method, path, accept string
		want                 bool
	}{
		{"GET", "/", "text/html,application/xhtml+xml", true},
		{"GET", "/", "*/*", true},
		{"HEAD", "/", "", true},
		{"POST", "/", "text/html", false},
		{"GET", "/ui", "", true},
		{"GET", "/ui/x/y", "", true},
		{"GET", "/uid", "text/html", false},
		{"GET", "/invocations", "text/html", false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("Accept", c.accept)
		require.Equal(t, c.want, Serves(r), c)
	}
}

func TestCompressionAndCaching(t *testing.T) {
	h := testHandler(t, "")
	plain := get(h, "/ui/app.js")
	require.Empty(t, plain.Header.Get("Content-Encoding"))
	require.Equal(t, "text/javascript; charset=utf-8", plain.Header.Get("Content-Type"))
	require.Equal(t, "Accept-Encoding", plain.Header.Get("Vary"))
	whole := text(t, plain)

	packed := get(h, "/ui/app.js", "Accept-Encoding", "br, gzip;q=0.5")
	require.Equal(t, "gzip", packed.Header.Get("Content-Encoding"))
	require.NotEqual(t, plain.Header.Get("ETag"), packed.Header.Get("ETag"))
	unpacked, err := gzip.NewReader(packed.Body)
	require.NoError(t, err)
	body, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, whole, string(body))

	require.Empty(t, get(h, "/ui/app.js", "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding"))
	require.Empty(t, get(h, "/ui/icon.svg", "Accept-Encoding", "gzip").Header.Get("Content-Encoding"), "not smaller")

	again := get(h, "/ui/app.js", "If-None-Match", `"x", W/`+plain.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, again.StatusCode)
	require.Empty(t, text(t, again))
	require.Equal(t, http.StatusOK, get(h, "/ui/app.js", "If-None-Match", packed.Header.Get("ETag")).StatusCode)

	require.Contains(t, get(h, "/ui/app.js?v="+h.version).Header.Get("Cache-Control"), "immutable")
	require.Equal(t, "no-cache", get(h, "/ui/app.js?v=old").Header.Get("Cache-Control"))
}

func TestPolicy(t *testing.T) {
	for ingress, connect := range map[string]string{
		"":                              "connect-src 'self';",
		"http://127.0.0.1:8080/":        "connect-src 'self' http://127.0.0.1:8080;",
		"https://calls.example.com/a/b": "connect-src 'self' https://calls.example.com;",
		"http://[::1]:8080/":            "connect-src 'self' http://[::1]:8080;",
		"unix:/run/ingress.sock":        "connect-src 'self';",
		"http://a;script-src *":         "connect-src 'self';",
	} {
		answer := get(testHandler(t, ingress), "/ui/")
		policy := answer.Header.Get("Content-Security-Policy")
		require.Contains(t, policy, connect)
		require.Contains(t, policy, "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:;")
		require.Contains(t, policy, "frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
	}
}

func TestOtherMethods(t *testing.T) {
	w := httptest.NewRecorder()
	testHandler(t, "").ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/ui/", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.JSONEq(t, `{"message":"the web UI is read with GET","platform_code":null}`, w.Body.String())

	w = httptest.NewRecorder()
	testHandler(t, "").ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/ui/app.js", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "10000", w.Header().Get("Content-Length"))
	require.Zero(t, w.Body.Len())
}
