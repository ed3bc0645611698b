package admin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServicesAreNotOpenedInTheStrictMode(t *testing.T) {
	w := seeded(t, func(c *Config) { c.SecurityMode = "strict" })
	rejected := w.ask(t, "PATCH", "/services/Greeter", `{"ingress_auth":"none"}`)
	require.Equal(t, http.StatusUnprocessableEntity, rejected.StatusCode)
	require.Contains(t, text(t, rejected), "callers of every service need credentials")
	require.NotEqual(t, http.StatusUnprocessableEntity, w.ask(t, "PATCH", "/services/Greeter", `{"ingress_auth":"token"}`).StatusCode)
}
