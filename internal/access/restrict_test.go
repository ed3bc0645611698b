package access

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Restrict guards, profiles and the metrics of the node port, is about all services and scopes.
func TestLimitedTokensReachNothingThatConcernsAllServices(t *testing.T) {
	text := "a token of the administrator of one service"
	limited := func(services, scopes []string) http.Handler {
		hash := sha256.Sum256([]byte(text))
		a := &Authenticator{Required: true, Static: []Grant{{Principal: Principal{Name: "ops", Roles: []Role{Admin}, Services: services, Scopes: scopes}, Hash: hash[:]}}}
		return Restrict(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), a, Profile)
	}
	for name, c := range map[string]struct {
		services, scopes []string
		status           int
	}{
		"everything":  {nil, nil, http.StatusNoContent},
		"one service": {[]string{"Orders"}, nil, http.StatusForbidden},
		"one scope":   {nil, []string{"tenant"}, http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/debug/pprof/", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		w := httptest.NewRecorder()
		limited(c.services, c.scopes).ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, name)
	}
}
