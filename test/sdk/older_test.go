package sdk

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// olderProtocolProxy is a proxy in front of a service that announces at most the given
// protocol version. Everything else is forwarded in both directions concurrently.
func olderProtocolProxy(t *testing.T, uri string, version int) string {
	target, err := url.Parse(uri)
	require.NoError(t, err)
	h2c := new(http.Protocols)
	h2c.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: h2c}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if r.Out.Body != nil {
				r.Out.Body = detachedBody(r.In.Body)
			}
		},
		Transport:     transport,
		FlushInterval: -1, // every message at once
		ModifyResponse: func(r *http.Response) error {
			if !strings.Contains(r.Header.Get("content-type"), "endpointmanifest") {
				return nil
			}
			return claim(r, version)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			panic(http.ErrAbortHandler) // the service broke off, so does the proxy
		},
	}
	server := httptest.NewUnstartedServer(proxy)
	server.Config.Protocols = h2c
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}

// detachedBody is a request body that can be closed during a read. Otherwise a transport
// with a broken connection waits until the body has been read, which takes as long as the
// server continues the request.
func detachedBody(body io.Reader) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, body)
		w.CloseWithError(err)
	}()
	return r
}

// claim sets the version in a manifest.
func claim(r *http.Response, version int) error {
	var manifest map[string]any
	if err := json.NewDecoder(r.Body).Decode(&manifest); err != nil {
		return err
	}
	if err := r.Body.Close(); err != nil {
		return err
	}
	manifest["maxProtocolVersion"] = version
	raw, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	r.ContentLength = int64(len(raw))
	r.Header.Set("content-length", strconv.Itoa(len(raw)))
	return nil
}
