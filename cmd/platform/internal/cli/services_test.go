package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServicesWithoutAccessToDeployments lists and shows services with a token that is limited to
// them: the admin API refuses its requests for deployments.
func TestServicesWithoutAccessToDeployments(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		const orders = `{"name":"Orders","ty":"Service","revision":3,"deployment_id":"dp_1","handlers":[{"name":"place"}]}`
		switch r.URL.Path {
		case "/services":
			_, _ = w.Write([]byte(`{"services":[` + orders + `]}`))
		case "/services/Orders":
			_, _ = w.Write([]byte(orders))
		default:
			http.Error(w, `{"message":"limited to the services Orders"}`, http.StatusForbidden)
		}
	})
	for _, args := range [][]string{{"list"}, {"describe", "Orders"}} {
		out.Reset()
		cmd := a.services()
		cmd.SetArgs(args)
		require.NoError(t, cmd.ExecuteContext(t.Context()), args)
		require.Contains(t, out.String(), "Orders")
		require.Contains(t, out.String(), "dp_1")
	}
}

// TestServiceShowsWhatHandlersOverride describes a service one of whose handlers has options of its
// own: without them, its attempts seem to have the limit of the service.
func TestServiceShowsWhatHandlersOverride(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/services/Orders" {
			http.Error(w, `{"message":"not here"}`, http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"name":"Orders","ty":"Service","retry_policy":{"max_attempts":70,"on_max_attempts":"Pause"},"handlers":[{"name":"place"},` +
			`{"name":"charge","inactivity_timeout":"5m","enable_lazy_state":true,"retry_policy":{"initial_interval":"50ms","max_attempts":3,"on_max_attempts":"Kill"}}]}`))
	})
	cmd := a.services()
	cmd.SetArgs([]string{"describe", "Orders"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	require.Contains(t, out.String(), "Overridden by handlers")
	require.Contains(t, out.String(), "charge:  inactivity timeout 5m, lazy state yes, first retry after 50ms, 3 attempts, then kill")
	require.NotContains(t, out.String(), "place:")
}
