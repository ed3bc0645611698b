package httpserver

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGzipIsUsedOnlyIfItIsAccepted(t *testing.T) {
	for accepted, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "*": true, "br": false, "zstd": false, "deflate": false, "identity": false, "gzipped": false,
		"gzip;q=0": false, "gzip; q=0.000": false, "gzip ;Q = 0": false, "gzip;q=0.001": true, "*;q=0": false, "*;q=0, gzip": true, "gzip;q=0, *": false,
		"br;q=1.0, gzip;q=0.8": true, "zstd, br": false, "identity;q=0, *": true, "br, *;q=0.1": true, "gzip;level=9": true,
	} {
		require.Equal(t, want, AcceptsGzip(http.Header{"Accept-Encoding": {accepted}}), accepted)
	}
	require.True(t, AcceptsGzip(http.Header{"Accept-Encoding": {"br", "gzip"}}))
	require.False(t, AcceptsGzip(http.Header{}))
}
