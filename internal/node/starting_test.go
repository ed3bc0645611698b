package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"platform/internal/access"
	"platform/internal/cluster"

	"github.com/stretchr/testify/require"
)

var anyHost = &access.Guard{Hosts: []string{access.AnyOne}}

func TestProvisioningRequiresGossip(t *testing.T) {
	s := &startup{provisioning: cluster.NewProvisioning(false, 4, 1, 1), guard: anyHost, authenticator: &access.Authenticator{}}
	reason := "waiting for room on the disk"
	s.wait(reason)
	w := httptest.NewRecorder()
	s.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/cluster/provision", strings.NewReader("{}")))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), reason)
	require.False(t, s.provisioning.Allowed())
}

// Errors have the format of the ingress, also from a node whose ingress has not started.
func TestCallersOfANodeThatStartsMayRetry(t *testing.T) {
	s := &startup{node: "n1", guard: anyHost, authenticator: &access.Authenticator{}}
	s.wait("waiting for 3 nodes")
	w := httptest.NewRecorder()
	s.handler(false).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/Greeter/greet", strings.NewReader("{}")))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"code":503,"source":"ingress","message":"node n1 is starting: waiting for 3 nodes; the request had no effect and can be retried safely"}`, w.Body.String())
	require.Equal(t, "ingress", w.Header().Get("x-platform-error-source"))
	require.Equal(t, "1", w.Header().Get("retry-after"))

	w = httptest.NewRecorder()
	s.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/deployments", nil))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"code":503,"platform_code":null,"message":"node n1 is starting: waiting for 3 nodes"}`, w.Body.String())
}
