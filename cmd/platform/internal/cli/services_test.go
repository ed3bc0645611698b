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
