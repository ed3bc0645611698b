package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/cli/command"
)

// Two discoveries of an endpoint differ if a load balancer distributes them over two versions of it:
// what is registered is then not what was confirmed.
func TestRegistrationOfAnEndpointThatChangesAfterThePlan(t *testing.T) {
	register := func(first, second string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				w.WriteHeader(http.StatusCreated)
				_, _ = fmt.Fprintf(w, `{"id":"dp_1new","services":[{"name":"S","revision":1,%s}]}`, first)
				first = second
			case r.URL.Path == "/services":
				_, _ = w.Write([]byte(`{"services":[]}`))
			default:
				_, _ = w.Write([]byte(`{"deployments":[]}`))
			}
		}))
		defer server.Close()
		env := map[string]string{"PLATFORM_ADMIN_URL": server.URL, "PLATFORM_CLI_CONFIG": filepath.Join(t.TempDir(), "none")}
		var out bytes.Buffer
		status := Run(t.Context(), []string{"deployments", "register", "localhost:9080", "--yes"}, command.System{
			In: strings.NewReader(""), Out: &out, Err: &out, Home: t.TempDir(), Getenv: func(name string) string { return env[name] },
		})
		require.Zero(t, status, "%s", &out)
		return out.String()
	}
	const notice = "Notice: the endpoint announced other services or handlers than when the changes above were shown"
	service, object := `"ty":"Service","handlers":[{"name":"a"}]`, `"ty":"VirtualObject","handlers":[{"name":"a"}]`
	require.NotContains(t, register(service, service), notice)
	require.Contains(t, register(service, object), notice)
	require.Contains(t, register(service, `"ty":"Service","handlers":[{"name":"b"}]`), notice)
}
