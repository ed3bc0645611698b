package sdk

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
	"platform/test/sdk/contract"
)

var ingressCases = []testCase{
	{"requests with one idempotency key run once and get one answer", func(e *env) {
		step := contract.Step{ID: e.id()}
		first := e.call(e.path("Steps", "once"), step, nil, "idempotency-key", e.id("key"))
		second := e.call(e.path("Steps", "once"), step, nil, "idempotency-key", e.id("key"))
		require.Equal(e, first.ID(), second.ID())
		require.Equal(e, first.Body, second.Body)
		third := e.call(e.path("Steps", "once"), step, nil, "idempotency-key", e.id("other"))
		require.NotEqual(e, first.ID(), third.ID())
		require.Equal(e, "2", string(third.Body))
		e.awaitRecords(e.id(), 2)
	}},
	{"concurrent requests with one idempotency key wait for the same run", func(e *env) {
		step := contract.Step{ID: e.id(), Gate: e.id()}
		go func() {
			e.recorder.Await(e.Context(), e.id(), 1, testTimeout)
			e.recorder.Open(e.id())
		}()
		answers := e.concurrently(4, func(ctx context.Context, _ int) (harness.Response, error) {
			return e.server.Client.Call(ctx, e.path("Steps", "once"), e.encode(step), "idempotency-key", e.id("key"))
		})
		for _, a := range answers {
			require.Equal(e, answers[0].ID(), a.ID())
			require.Equal(e, "1", string(a.Body))
		}
		e.awaitRecords(e.id(), 1)
	}},
	{"a failed result is kept for its idempotency key as well", func(e *env) {
		step := contract.Step{Code: 417, Message: "once and for all"}
		for range 2 {
			answer := e.try(e.path("Steps", "fail"), step, "idempotency-key", e.id("key"))
			require.Equal(e, "once and for all", e.decodeFailure(answer, 417).Message)
		}
	}},
	{"a send says whether it is new", func(e *env) {
		step := contract.Step{ID: e.id()}
		first := e.send(e.path("Steps", "once"), step, "idempotency-key", e.id("key"))
		require.Equal(e, "Accepted", first.Status)
		second := e.send(e.path("Steps", "once"), step, "idempotency-key", e.id("key"))
		require.Equal(e, "PreviouslyAccepted", second.Status)
		require.Equal(e, first.InvocationID, second.InvocationID)
		e.awaitRecords(e.id(), 1)
	}},
	{"a delayed send waits and tells until when", func(e *env) {
		const delay = 400 * time.Millisecond
		begin := time.Now()
		sent := e.send(e.path("Steps", "once")+"?delay=400ms", contract.Step{ID: e.id()})
		at, err := time.Parse(time.RFC3339Nano, sent.ExecutionTime)
		require.NoError(e, err)
		require.WithinRange(e, at, begin.Add(delay-time.Millisecond), begin.Add(delay+10*time.Second))
		e.awaitRecords(e.id(), 1)
		require.GreaterOrEqual(e, time.Since(begin), delay)
	}},
	{"attach waits for the result and output does not", func(e *env) {
		sent := e.send(e.path("Steps", "once"), contract.Step{ID: e.id(), Gate: e.id()}, "idempotency-key", e.id("key"))
		pending, err := e.server.Client.Output(e.bounded(), sent.InvocationID)
		require.NoError(e, err)
		require.Equal(e, "ingress", e.decodeFailure(pending, 470).Source)

		attached := make(chan harness.Response, 1)
		go func() {
			a, _ := e.server.Client.Attach(e.bounded(), sent.InvocationID)
			attached <- a
		}()
		e.awaitRecords(e.id(), 1)
		e.recorder.Open(e.id())
		answer := <-attached
		require.Equal(e, 200, answer.Status, "%s", answer.Body)
		require.Equal(e, "1", string(answer.Body))

		output, err := e.server.Client.Output(e.bounded(), sent.InvocationID)
		require.NoError(e, err)
		require.Equal(e, 200, output.Status, "%s", output.Body)
		require.Equal(e, "1", string(output.Body))
	}},
	{"attach and output of an unknown invocation are not found", func(e *env) {
		known := e.call(e.path("Echo", "json"), contract.Message{}, nil).ID()
		unknown := known[:20] + strings.Repeat("1", len(known)-20)
		for _, ask := range []func(context.Context, string) (harness.Response, error){e.server.Client.Attach, e.server.Client.Output} {
			answer, err := ask(e.bounded(), unknown)
			require.NoError(e, err)
			source := e.decodeFailure(answer, http.StatusNotFound).Source
			if e.server.Target.Name == "platform" { // the peer blames the invocation for an attach
				require.Equal(e, "ingress", source)
			}
		}
	}},
	{"an unknown service or handler is not found", func(e *env) {
		require.Equal(e, "ingress", e.decodeFailure(e.try(e.path("Nobody", "json"), contract.Message{}), http.StatusNotFound).Source)
		require.Equal(e, "ingress", e.decodeFailure(e.try(e.path("Echo", "nope"), contract.Message{}), http.StatusNotFound).Source)
	}},
	{"an invocation goes on when its caller leaves", func(e *env) {
		step := contract.Step{ID: e.id(), Gate: e.id()}
		ctx, leave := context.WithCancel(e.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := e.server.Client.Call(ctx, e.path("Steps", "once"), e.encode(step), "idempotency-key", e.id("key"))
			gone <- err
		}()
		e.awaitRecords(e.id(), 1)
		leave()
		require.ErrorIs(e, <-gone, context.Canceled)
		e.recorder.Open(e.id())
		var n int
		e.call(e.path("Steps", "once"), step, &n, "idempotency-key", e.id("key"))
		require.Equal(e, 1, n)
		e.awaitRecords(e.id(), 1)
	}},
}
