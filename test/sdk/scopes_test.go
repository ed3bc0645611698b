package sdk

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

// flowControl are the settings that enable scopes.
var flowControl = map[string]string{protocol7: "true", "EXPERIMENTAL_ENABLE_VQUEUES": "true"}

// TestScopesOfPublishedIngressClients tests scopes and limit keys with the published clients
// of the SDKs.
func TestScopesOfPublishedIngressClients(t *testing.T) {
	s := &suite{recorder: harness.RecorderFor(t)}
	s.server = harness.ServerFor(t, flowControl)
	service := languages[0].start(t, s.recorder)
	require.NoError(t, s.server.Register(t.Context(), service.URI(), false))
	run := func(name string, use func(*env)) {
		t.Run(name, func(t *testing.T) {
			use(&env{T: t, suite: s, lang: "Go", server: s.server, service: service, recorder: s.recorder})
		})
	}
	run("Go", scopesOfGoClient)
	if missing := languages[1].missing(); missing != "" {
		t.Run("Ts", func(t *testing.T) { t.Skip(missing) })
		return
	}
	run("Ts", scopesOfTsClient)
}

func scopesOfGoClient(e *env) {
	client, ctx := ingress.NewClient(e.server.Client.Base()), e.bounded()
	for _, scope := range []string{"tenant-1", "tenant-2"} {
		in := restate.WithScope(scope)
		said, err := ingress.Service[contract.Say, string](client, "GoUtils", "say", in).
			Request(ctx, contract.Say{Value: scope}, restate.WithLimitKey("team/user"))
		require.NoError(e, err)
		require.Equal(e, scope, said)
		// An object of each scope, and one without.
		n, err := ingress.Object[string, int](client, "GoQueue", e.id(), "append", in).Request(ctx, "a")
		require.NoError(e, err)
		require.Equal(e, 1, n)

		once := ingress.Service[contract.Say, string](client, "GoUtils", "say", in)
		for _, status := range []string{"Accepted", "PreviouslyAccepted"} {
			sent, err := once.Send(ctx, contract.Say{Value: scope}, restate.WithIdempotencyKey(e.id()))
			require.NoError(e, err)
			require.Equal(e, status, sent.Status())
			said, err := sent.Attach(ctx)
			require.NoError(e, err)
			require.Equal(e, scope, said)
		}
	}
	n, err := ingress.Object[string, int](client, "GoQueue", e.id(), "append").Request(ctx, "a")
	require.NoError(e, err)
	require.Equal(e, 1, n)

	var refusal ingress.Error
	_, err = ingress.Service[contract.Say, string](client, "GoUtils", "say").
		Request(ctx, contract.Say{}, restate.WithLimitKey("team"))
	require.ErrorAs(e, err, &refusal)
	require.False(e, refusal.IsInvocationError())
	require.Equal(e, restate.Code(400), refusal.Code())
}

// scopesOfTsClient runs the program scopes.js and compares its results.
func scopesOfTsClient(e *env) {
	cmd := exec.CommandContext(e.bounded(), "node", "src/scopes.js")
	cmd.Dir = "services/ts"
	cmd.Env = append(cmd.Environ(), "INGRESS="+e.server.Client.Base(), "PREFIX=Go", "ID="+e.id())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	require.NoError(e, err, "%s", stderr.String())
	var got map[string]any
	require.NoError(e, json.Unmarshal(stdout, &got), "%s", stdout)
	require.Equal(e, map[string]any{
		"call":     "größe",
		"objects":  []any{1.0, 1.0, 2.0},
		"sent":     []any{"Accepted", "PreviouslyAccepted", "Accepted"},
		"delayed":  "Accepted",
		"generic":  "typed",
		"workflow": []any{"Accepted", "PreviouslyAccepted", "Accepted"},
		"unscoped": 400.0,
		"bad":      400.0,
	}, got)
}
