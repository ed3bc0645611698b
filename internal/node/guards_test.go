package node

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/internal/cluster"
)

// A web page must not create the cluster of a node that waits for its operator.
func TestPagesOfOtherSitesCannotProvision(t *testing.T) {
	s := &startup{provisioning: cluster.NewProvisioning(false, 4, 1, 1), guard: &access.Guard{Setting: "admin"}, authenticator: &access.Authenticator{}}
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
