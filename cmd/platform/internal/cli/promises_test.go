package cli

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPromisesOfAServiceThatIsNoWorkflow(t *testing.T) {
	a, out := at(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/services/Cart" {
			_, _ = w.Write([]byte(`{"name":"Cart","ty":"VirtualObject"}`))
			return
		}
		_, _ = w.Write([]byte(`{"rows":[]}`))
	})
	for _, args := range [][]string{{"list", "Cart/a", "--json"}, {"list", "Cart/a"}, {"get", "Cart/a", "p"}} {
		cmd := a.promises()
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		require.EqualError(t, cmd.ExecuteContext(t.Context()), "Cart is not a workflow but a VirtualObject", args)
		require.Empty(t, out.String())
	}
}
