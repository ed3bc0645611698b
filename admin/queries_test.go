package admin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"platform/admin/query"
	"platform/admin/rest"
)

func TestRateLimitedQueriesSayWhenToTryAgain(t *testing.T) {
	w := httptest.NewRecorder()
	c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/query", nil), w)
	err := new(Server).queryFailure(c, &query.RateError{After: 1500 * time.Millisecond})
	refusal, ok := errors.AsType[*rest.Error](err)
	require.True(t, ok)
	require.Equal(t, http.StatusTooManyRequests, refusal.Status)
	require.Equal(t, "too many queries (admin.query-engine.rate-limiting); try again in 2 s", refusal.Message)
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
