package admin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/admin/query"
	"platform/admin/rest"
)

func TestRateLimitedQueriesSayWhenToTryAgain(t *testing.T) {
	w := httptest.NewRecorder()
	rest.WriteError(w, httptest.NewRequest(http.MethodPost, "/query", nil), explainQuery(&query.RateError{After: 1500 * time.Millisecond}))
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Contains(t, w.Body.String(), "too many queries (admin.query-engine.rate-limiting); try again in 2 s")
	require.Equal(t, "2", w.Header().Get("Retry-After"))
}

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
