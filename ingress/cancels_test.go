package ingress

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Executed requests compensate cancelled ones, also if the handler fails. Requests that are rejected are cheaper
// than calls, so they do not.
func TestOnlyExecutedRequestsCompensateCancels(t *testing.T) {
	f := &fakeInvocations{call: func(_ context.Context, inv *machine.Invoke) (routing.Response, error) {
		response := routing.Response{ID: inv.ID, Target: inv.Target}
		if inv.Target.Handler == "typed" {
			response.Result.Failure = &journal.Failure{Code: http.StatusConflict, Message: "sold out"}
		}
		return response, nil
	}}
	s := testServer(t, Config{}, f)
	completed := 0
	s.completed = func(context.Context) { completed++ }
	for path, want := range map[string]int{
		"/Greeter/strict": 1, "/Greeter/strict/send": 1, "/Greeter/typed": 1,
		"/Greeter/unknown": 0, "/Greeter/hidden": 0, "/platform/unknown": 0, "/platform/health": 0,
	} {
		completed = 0
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`"x"`))
		if path == "/platform/health" {
			r = httptest.NewRequest(http.MethodGet, path, nil)
		}
		r.Header.Set("Content-Type", "application/json")
		s.handler().ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, want, completed, path)
	}
}
