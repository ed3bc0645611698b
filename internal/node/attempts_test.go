package node

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/config"
	"platform/internal/units"
)

// A restart of the node neither begins the count of attempts again, nor the maximum of the retry policy.
func TestAttemptsAreCountedAcrossARestart(t *testing.T) {
	const before, most = 3, 6
	c := newTestClusterWith(t, 1, func(cfg *config.Config) {
		p := &cfg.DefaultRetryPolicy
		p.InitialInterval, p.ExponentiationFactor, p.MaxAttempts = units.Duration(10*time.Millisecond), 1, most
	})
	c.healthy(1, 0)
	attempts, proceed := make(chan struct{}, 2*most), make(chan struct{})
	c.guardedCounter(0, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/invoke/") {
				next.ServeHTTP(w, r)
				return
			}
			if attempts <- struct{}{}; len(attempts) > before {
				select {
				case <-proceed:
				case <-r.Context().Done():
				}
			}
			w.WriteHeader(http.StatusInternalServerError)
		})
	}, "")
	code, body := c.do(0, false, "POST", "/platform/send/Counter/k/add", "1")
	require.Equal(t, http.StatusAccepted, code, body)
	var sent struct {
		ID string `json:"invocationId"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &sent))
	type invocation struct {
		Status     string
		RetryCount int                    `json:"retry_count"`
		LastPause  struct{ Attempts int } `json:"last_pause"`
	}
	until := func(done func(invocation) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			var inv invocation
			code, body := c.do(0, true, "GET", "/invocations/"+sent.ID, "")
			return code == http.StatusOK && json.Unmarshal([]byte(body), &inv) == nil && done(inv)
		}, waitTimeout, 10*time.Millisecond)
	}
	fourth := func(inv invocation) bool { return inv.Status == "running" && inv.RetryCount == before+1 }
	until(fourth)
	c.stop(0)
	c.start(0)
	c.healthy(1, 0)
	until(fourth)
	close(proceed)
	until(func(inv invocation) bool { return inv.Status == "paused" && inv.LastPause.Attempts == most })
	require.Len(t, attempts, most+1, "the restart interrupted one")
}
