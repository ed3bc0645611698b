package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormatOfQueryResults(t *testing.T) {
	for _, c := range []struct {
		accept, agent string
		arrow         bool
	}{
		{"", "", false},
		{"*/*", "curl/8.5.0", false},
		{"*/*", "restate-cli/1.7.12 linux-x86_64", true},
		{"application/json", "restate-cli/1.7.12 linux-x86_64", false},
		{"application/vnd.apache.arrow.stream", "", true},
		{"application/vnd.apache.arrow.stream, application/json", "", false},
		{"text/html", "", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/query", nil)
		r.Header.Set("Accept", c.accept)
		r.Header.Set("User-Agent", c.agent)
		require.Equal(t, c.arrow, wantsArrow(r), "%+v", c)
	}
}
