package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/restatedev/sdk-go/ingress"
	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

// TestPublishedIngressClients runs the unmodified published ingress clients of the SDKs.
func TestPublishedIngressClients(t *testing.T) {
	s := &suite{recorder: harness.RecorderFor(t)}
	s.server = harness.ServerFor(t, nil)
	service := languages[0].start(t, s.recorder)
	require.NoError(t, s.server.Register(t.Context(), service.URI(), false))
	run := func(name string, use func(*env)) {
		t.Run(name, func(t *testing.T) {
			use(&env{T: t, suite: s, lang: "Go", server: s.server, service: service, recorder: s.recorder})
		})
	}
	run("Go", testGoClient)
	if missing := languages[1].missing(); missing != "" {
		t.Run("Ts", func(t *testing.T) { t.Skip(missing) })
		return
	}
	run("Ts", testTsClient)
}

func testGoClient(e *env) {
	client, ctx := ingress.NewClient(e.server.Client.Base()), e.bounded()

	said, err := ingress.Service[contract.Say, string](client, "GoUtils", "say").Request(ctx, contract.Say{Value: "größe"})
	require.NoError(e, err)
	require.Equal(e, "größe", said)
	n, err := ingress.Object[string, int](client, "GoQueue", e.id(), "append").Request(ctx, "a")
	require.NoError(e, err)
	require.Equal(e, 1, n)

	_, err = ingress.Service[contract.Step, int](client, "GoSteps", "fail").Request(ctx, contract.Step{Code: 418, Message: "teapot"})
	var refusal ingress.Error
	require.ErrorAs(e, err, &refusal)
	require.True(e, refusal.IsInvocationError())
	require.Equal(e, restate.Code(418), refusal.Code())
	_, err = ingress.Service[string, int](client, "GoNobody", "nothing").Request(ctx, "")
	require.ErrorAs(e, err, &refusal)
	require.False(e, refusal.IsInvocationError())

	testGoHandles(e, client)
	testGoWorkflow(e, client)
}

// testGoHandles tests the client's operations on sent invocations.
func testGoHandles(e *env, client *ingress.Client) {
	ctx := e.bounded()
	step := contract.Step{ID: e.id(), Gate: e.id()}
	once := ingress.Service[contract.Step, int](client, "GoSteps", "once")
	sent, err := once.Send(ctx, step, restate.WithIdempotencyKey(e.id()))
	require.NoError(e, err)
	require.Equal(e, "Accepted", sent.Status())
	e.awaitRecords(e.id(), 1)
	var unready *ingress.InvocationNotReadyError
	_, err = sent.Output(ctx)
	require.ErrorAs(e, err, &unready)
	e.recorder.Open(e.id())
	n, err := sent.Attach(ctx)
	require.NoError(e, err)
	require.Equal(e, 1, n)
	again, err := once.Send(ctx, step, restate.WithIdempotencyKey(e.id()))
	require.NoError(e, err)
	require.Equal(e, []string{sent.Id(), "PreviouslyAccepted"}, []string{again.Id(), again.Status()})

	for _, handle := range []ingress.InvocationHandle[int]{
		ingress.InvocationById[int](client, sent.Id()),
		ingress.ServiceInvocationByIdempotencyKey[int](client, "GoSteps", "once", e.id()),
	} {
		n, err = handle.Output(ctx)
		require.NoError(e, err)
		require.Equal(e, 1, n)
		n, err = handle.Attach(ctx)
		require.NoError(e, err)
		require.Equal(e, 1, n)
	}
	var unknown *ingress.InvocationNotFoundError
	_, err = ingress.ServiceInvocationByIdempotencyKey[int](client, "GoSteps", "once", e.id("unknown")).Output(ctx)
	require.ErrorAs(e, err, &unknown)

	key := e.id("keyed")
	first, err := ingress.Object[string, int](client, "GoQueue", key, "append").Request(ctx, "v", restate.WithIdempotencyKey(key))
	require.NoError(e, err)
	kept, err := ingress.ObjectInvocationByIdempotencyKey[int](client, "GoQueue", key, "append", key).Attach(ctx)
	require.NoError(e, err)
	require.Equal(e, first, kept)

	begin := time.Now()
	_, err = ingress.ServiceSend[contract.Step](client, "GoSteps", "once").Send(ctx, contract.Step{ID: e.id("delayed")}, restate.WithDelay(200*time.Millisecond))
	require.NoError(e, err)
	e.awaitRecords(e.id("delayed"), 1)
	require.GreaterOrEqual(e, time.Since(begin), 200*time.Millisecond)
}

func testGoWorkflow(e *env, client *ingress.Client) {
	ctx, key := e.bounded(), e.id("flow")
	sent, err := ingress.WorkflowSend[contract.Flow](client, "GoFlow", key, "run").Send(ctx, contract.Flow{ID: key, Promises: []string{"p"}})
	require.NoError(e, err)
	require.Equal(e, "Accepted", sent.Status())
	handle := ingress.WorkflowHandle[[]string](client, "GoFlow", key)
	var unready *ingress.InvocationNotReadyError
	_, err = handle.Output(ctx)
	require.True(e, errors.As(err, &unready), "%v", err)
	f, err := ingress.Workflow[contract.Completion, contract.Failure](client, "GoFlow", key, "complete").
		Request(ctx, contract.Completion{Promise: "p", Value: "done"})
	require.NoError(e, err)
	require.Zero(e, f)
	out, err := handle.Attach(ctx)
	require.NoError(e, err)
	require.Equal(e, []string{"done"}, out)
}

// testTsClient runs the program client.js and compares its results.
func testTsClient(e *env) {
	cmd := exec.CommandContext(e.bounded(), "node", "src/client.js")
	cmd.Dir = "services/ts"
	cmd.Env = append(cmd.Environ(), "INGRESS="+e.server.Client.Base(), "PREFIX=Go", "ID="+e.id())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(e, err)
	require.NoError(e, cmd.Start())
	go func() {
		for _, id := range e.recorder.Await(e.Context(), e.id("awakeables"), 2, testTimeout) {
			_, _ = fmt.Fprintln(stdin, id)
		}
		_, _ = io.WriteString(stdin, "\n")
	}()
	require.NoError(e, cmd.Wait(), "%s", stderr.String())
	var got map[string]any
	require.NoError(e, json.Unmarshal(stdout.Bytes(), &got), "%s", stdout.String())
	no := map[string]any{"code": 0.0, "message": ""}
	require.Equal(e, map[string]any{
		"call":       "größe",
		"object":     []any{1.0, 2.0},
		"failed":     418.0,
		"missing":    404.0,
		"once":       []any{1.0, 1.0},
		"sent":       []any{"Accepted", "sent"},
		"again":      []any{"PreviouslyAccepted", true},
		"delayed":    "later",
		"queued":     "Accepted",
		"submitted":  "Accepted",
		"unready":    false,
		"completed":  no,
		"attached":   []any{"done"},
		"output":     map[string]any{"ready": true, "result": []any{"done"}},
		"result":     []any{"done"},
		"awakeables": []any{map[string]any{"value": "resolved"}, map[string]any{"code": 500.0, "message": "rejected"}},
	}, got)
}
