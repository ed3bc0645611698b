package lifecycle

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster"
)

var anyHost = &access.Guard{Hosts: []string{access.AnyOne}}

// TestProvisioningRefusesRepeatedFields has two values of one field, of which only one could take
// effect.
func TestProvisioningRefusesRepeatedFields(t *testing.T) {
	for _, body := range []string{`{"replication":1,"replication":3}`, `{"replication":1,"Replication":3}`} {
		s := NewStartup(StartupConfig{Provisioning: cluster.NewProvisioning(false, 4, 1, 1), Guard: anyHost, Authenticator: &access.Authenticator{}})
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9070/cluster/provision", strings.NewReader(body))
		s.handler(true).ServeHTTP(w, r)
		require.Equal(t, http.StatusBadRequest, w.Code)
		require.Contains(t, strings.ToLower(w.Body.String()), "the field 'replication' twice")
	}
}

func TestProvisioningRequiresGossip(t *testing.T) {
	s := NewStartup(StartupConfig{Provisioning: cluster.NewProvisioning(false, 4, 1, 1), Guard: anyHost, Authenticator: &access.Authenticator{}})
	reason := "waiting for room on the disk"
	s.Report(reason)
	w := httptest.NewRecorder()
	s.handler(true).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/cluster/provision", strings.NewReader("{}")))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Contains(t, w.Body.String(), reason)
	require.False(t, s.cfg.Provisioning.Allowed())
}

// Errors have the format of the ingress, also from a node whose ingress has not started.
func TestCallersOfANodeThatStartsMayRetry(t *testing.T) {
	s := NewStartup(StartupConfig{Node: "n1", Guard: anyHost, Authenticator: &access.Authenticator{}})
	s.Report("waiting for 3 nodes")
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

// A web page must not create the cluster of a node that waits for its operator.
func TestPagesOfOtherSitesCannotProvision(t *testing.T) {
	s := NewStartup(StartupConfig{Provisioning: cluster.NewProvisioning(false, 4, 1, 1), Guard: &access.Guard{Setting: "admin"}, Authenticator: &access.Authenticator{}})
	for name, change := range map[string]func(*http.Request){
		"host":       func(r *http.Request) { r.Host = "evil.example" },
		"origin":     func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"cross-site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost:9070/cluster/provision", strings.NewReader("{}"))
		change(r)
		w := httptest.NewRecorder()
		s.handler(true).ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code, name)
	}
}

func TestProvisioningRequiresTheAdministrator(t *testing.T) {
	secret := access.NewSecret()
	s := NewStartup(StartupConfig{Guard: anyHost, Authenticator: &access.Authenticator{
		Required: true, Static: []access.Grant{{Principal: access.Principal{Roles: []access.Role{access.Viewer}}, Hash: secret.Hash[:]}},
	}})
	for token, want := range map[string]int{"": 401, "x": 401, secret.Text: 403} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/cluster/provision", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.handler(true).ServeHTTP(w, r)
		require.Equal(t, want, w.Code)
	}
}
