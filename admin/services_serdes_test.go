package admin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConversions(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://localhost:9080/"] = small
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9080"}`))
	var id string
	for known := range w.store.Schemas().Deployments {
		id = string(known)
	}
	const path = "/internal/services/Greeter/serdes/"
	response := w.ask(t, "POST", path+"decode/get%2Finput", "x", "Content-Type", "application/octet-stream")
	require.Equal(t, "text/x-test", response.Header.Get("Content-Type"))
	require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	require.Contains(t, response.Header.Get("Content-Security-Policy"), "sandbox")
	require.Equal(t, id+" Greeter false get/input x", requireStatus(t, http.StatusOK, response))
	require.Equal(t, id+" Greeter true custom ", requireStatus(t, http.StatusOK, w.ask(t, "POST", path+"encode/custom?deployment="+id, "")))

	for _, c := range []struct {
		path    string
		status  int
		message string
	}{
		{"/internal/services/Missing/serdes/decode/x", 404, "Missing"},
		{path + "turn/x", 404, "there are encode and decode"},
		{path + "decode/unknown", 404, "has no conversion for 'unknown' of service Greeter: no serde"},
		{path + "decode/broken", 502, "responded to the conversion with status 500: cannot be decoded"},
		{path + "decode/x?deployment=dp_1", 400, "The query parameter 'deployment' is invalid"},
		{path + "decode/x?deployment=dp_10000000000000000000009", 404, "dp_10000000000000000000009"},
	} {
		require.Contains(t, requireStatus(t, c.status, w.ask(t, "POST", c.path, "x")), c.message, c.path)
	}
}

// The permission to convert values of a service does not extend to endpoints of others.
func TestConversionsUseOnlyDeploymentsOfTheService(t *testing.T) {
	w := newTestServer(t, nil)
	w.offers["http://localhost:9080/"], w.offers["http://localhost:9081/"] = small, large
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9080"}`))
	requireStatus(t, http.StatusCreated, w.ask(t, "POST", "/deployments", `{"uri":"http://localhost:9081"}`))
	other := string(w.store.Schemas().Services["Counter"].Deployment)
	body := requireStatus(t, http.StatusNotFound, w.ask(t, "POST", "/internal/services/Greeter/serdes/decode/custom?deployment="+other, "x"))
	require.Contains(t, body, "deployment "+other+" has no service Greeter")
}
