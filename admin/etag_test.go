package admin

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadsAreNotSentAgainWhileTheyAreTheSame(t *testing.T) {
	w := newTestServer(t, nil)
	send := func(method, path string, header ...string) *http.Response {
		r := httptest.NewRequest(method, path, http.NoBody)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, r)
		return rec.Result()
	}
	first := send("GET", "/errors")
	require.Equal(t, http.StatusOK, first.StatusCode)
	tag := first.Header.Get("ETag")
	require.Regexp(t, `^W/"[0-9a-f]{16}"$`, tag)
	require.Equal(t, "no-store", first.Header.Get("Cache-Control"))

	for _, given := range []string{tag, strings.TrimPrefix(tag, "W/"), `"other", ` + tag, "*"} {
		again := send("GET", "/errors", "If-None-Match", given, "Accept-Encoding", "gzip")
		body, err := io.ReadAll(again.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotModified, again.StatusCode, given)
		require.Empty(t, body)
		require.Empty(t, again.Header.Get("Content-Encoding"))
		require.Equal(t, tag, again.Header.Get("ETag"))
	}
	require.Equal(t, http.StatusOK, send("GET", "/errors", "If-None-Match", `W/"0000000000000000"`).StatusCode)
	require.Equal(t, http.StatusNotModified, send("HEAD", "/errors", "If-None-Match", tag).StatusCode)

	zipped := send("GET", "/openapi", "Accept-Encoding", "gzip")
	require.Equal(t, "gzip", zipped.Header.Get("Content-Encoding"))
	unzipped, err := gzip.NewReader(zipped.Body)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(unzipped).Decode(&struct{}{}))

	for _, accepted := range []string{"gzip;q=0", "br, zstd", "gzip;q=0, *", "identity"} {
		plain := send("GET", "/openapi", "Accept-Encoding", accepted)
		require.Empty(t, plain.Header.Get("Content-Encoding"), accepted)
		require.Equal(t, "Accept-Encoding", plain.Header.Get("Vary"), accepted)
		require.NoError(t, json.NewDecoder(plain.Body).Decode(&struct{}{}), accepted)
	}

	rejected := send("GET", "/invocations/none", "If-None-Match", "*")
	require.Equal(t, http.StatusBadRequest, rejected.StatusCode, "errors have no tag")
	require.Empty(t, rejected.Header.Get("ETag"))
}
