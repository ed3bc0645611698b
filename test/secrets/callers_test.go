package secrets

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/access"
	"platform/test/harness"
)

// Two clients with tokens use the same idempotency key: each has its own invocation, and neither
// gets the result of the other one, whatever it guesses.
func TestResultsBelongToTheCallerWhoseKeyItIs(t *testing.T) {
	w := &world{T: t, token: access.NewSecret().Text}
	w.server = harness.ServerFor(t, map[string]string{"ADMIN_TOKEN": w.token, "SECURITY__MODE": "strict"})
	code, text := w.admin("POST", "/deployments", `{"uri":"`+serveGreeter(t)+`"}`)
	require.Equal(t, 201, code, string(text))
	bearer := func(name string, roles string) []string {
		code, text := w.admin("POST", "/tokens", `{"name":"`+name+`","roles":[`+roles+`]}`)
		require.Equal(t, 201, code, string(text))
		var created struct{ Token string }
		require.NoError(t, json.Unmarshal(text, &created))
		return []string{"Authorization", "Bearer " + created.Token}
	}
	ada, eve, support := bearer("ada", `"invoker"`), bearer("eve", `"invoker"`), bearer("support", `"invoker","reader"`)
	ingress := w.server.Client.Base()
	key := []string{"Idempotency-Key", "order-17"}
	known := `{"target":"idempotentInvocation","service":"Greeter","handler":"Greet","idempotencyKey":"order-17"}`
	lookup := func(as []string) (id struct{ InvocationID string }) {
		code, text := w.ask("POST", ingress+"/platform/lookup", known, as...)
		require.Equal(t, 200, code, string(text))
		require.NoError(t, json.Unmarshal(text, &id))
		return id
	}
	call := func(name string, as []string) string {
		code, text := w.ask("POST", ingress+"/Greeter/Greet", `"`+name+`"`, append(as, key...)...)
		require.Equal(t, 200, code, string(text))
		return string(text)
	}
	require.Equal(t, `"Hello Ada"`, call("Ada", ada))
	require.Equal(t, `"Hello Ada"`, call("Grace", ada))
	id := lookup(ada).InvocationID
	paths := []string{"/platform/attach/" + id, "/platform/output/" + id, "/platform/invocation/Greeter/Greet/order-17/attach", "/platform/invocation/Greeter/Greet/order-17/output"}
	for _, path := range paths {
		code, text := w.ask("GET", ingress+path, "", ada...)
		require.Equal(t, 200, code, string(text))
		require.Equal(t, `"Hello Ada"`, string(text))
		code, text = w.ask("GET", ingress+path, "", eve...)
		require.Equal(t, 404, code, path+": "+string(text))
	}
	for _, path := range []string{"/platform/attach", "/platform/output"} {
		code, text := w.ask("POST", ingress+path, known, eve...)
		require.Equal(t, 404, code, string(text))
	}
	code, text = w.ask("GET", ingress+paths[0], "", support...)
	require.Equal(t, 200, code, "a reader may read results: "+string(text))
	require.Equal(t, `"Hello Eve"`, call("Eve", eve))
	require.NotEqual(t, id, lookup(eve).InvocationID)

	// A new token for the same client.
	code, text = w.admin("DELETE", "/tokens/ada", "")
	require.Equal(t, 200, code, string(text))
	ada = bearer("ada", `"invoker"`)
	require.Equal(t, `"Hello Ada"`, call("Lin", ada))
}
