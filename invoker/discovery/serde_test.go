package discovery

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/metadata"
)

func TestConversions(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(r.URL.Path, "/huge") {
			_, _ = w.Write(make([]byte, 2000))
			return
		}
		w.Header().Set("Content-Type", "text/x-test")
		if strings.Contains(r.URL.Path, "/none") {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("X-Key")+" "+string(body))
	}, nil)
	cfg := quick()
	cfg.maxBody = 1000
	d := newDiscoverer(t, cfg)
	c := Conversion{
		Deployment: &metadata.Deployment{URI: s.URL + "/base/", AdditionalHeaders: map[string]string{"X-Key": "k"}},
		Service:    "Greeter", Serde: "greet/input", Body: []byte("\x00\x01"),
	}
	got, err := d.Convert(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, Converted{200, "text/x-test", []byte("POST /base/serdes/Greeter/decode/greet%2Finput k \x00\x01")}, got)

	c.Encode, c.Serde = true, "none"
	got, err = d.Convert(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 404, got.Status)
	require.Contains(t, string(got.Body), "/serdes/Greeter/encode/none")

	c.Serde = "huge"
	_, err = d.Convert(t.Context(), c)
	require.ErrorContains(t, err, "larger than 1000 bytes")

	s.Close()
	c.Serde = "none"
	_, err = d.Convert(t.Context(), c)
	require.ErrorContains(t, err, "META0003")
}
