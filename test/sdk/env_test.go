package sdk

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/test/harness"
)

// testTimeout limits each wait in a case.
const testTimeout = 80 * time.Second

// pollInterval is the interval of polling a condition.
const pollInterval = 20 * time.Millisecond

// testCase tests one feature with the services of one language.
type testCase struct {
	name string
	run  func(e *env)
}

// env is the environment of a case.
type env struct {
	*testing.T
	suite    *suite
	lang     string
	langs    []string // all running languages
	server   *harness.Server
	service  *harness.Service
	recorder *harness.Recorder
}

// id returns a name unique to the case, followed by the given parts.
func (e *env) id(parts ...string) string {
	name := strings.NewReplacer("/", "-", "#", "-").Replace(e.Name())
	return strings.Join(append([]string{name}, parts...), "-")
}

// path returns the path of a handler of this language's services: service and handler, or
// object, key and handler.
func (e *env) path(service string, rest ...string) string {
	return harness.Path(append([]string{e.lang + service}, rest...)...)
}

// bounded returns a context with testTimeout that ends with the case.
func (e *env) bounded() context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), testTimeout)
	e.Cleanup(cancel)
	return ctx
}

// encode returns in as JSON; nil means no body.
func (e *env) encode(in any) []byte {
	if in == nil {
		return nil
	}
	body, err := json.Marshal(in)
	require.NoError(e, err)
	return body
}

// try calls the handler and returns any response.
func (e *env) try(path string, in any, header ...string) harness.Response {
	e.Helper()
	resp, err := e.server.Client.Call(e.bounded(), path, e.encode(in), header...)
	require.NoError(e, err)
	return resp
}

// call calls the handler, which must succeed, and decodes the result into out.
func (e *env) call(path string, in, out any, header ...string) harness.Response {
	e.Helper()
	resp := e.try(path, in, header...)
	require.Equal(e, http.StatusOK, resp.Status, "%s", resp.Body)
	require.NotEmpty(e, resp.ID())
	if out != nil {
		require.NoError(e, resp.Decode(out))
	}
	return resp
}

// concurrently makes n concurrent requests and returns the responses, which must all have
// status 200.
func (e *env) concurrently(n int, request func(ctx context.Context, i int) (harness.Response, error)) []harness.Response {
	e.Helper()
	ctx := e.bounded()
	answers, errs := make([]harness.Response, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i], errs[i] = request(ctx, i) })
	}
	wg.Wait()
	for i, resp := range answers {
		require.NoError(e, errs[i])
		require.Equal(e, http.StatusOK, resp.Status, "%s", resp.Body)
	}
	return answers
}

// send invokes the handler one-way.
func (e *env) send(path string, in any, header ...string) harness.Sent {
	e.Helper()
	resp, err := e.server.Client.Send(e.bounded(), path, e.encode(in), header...)
	require.NoError(e, err)
	require.Equal(e, http.StatusAccepted, resp.Status, "%s", resp.Body)
	var sent harness.Sent
	require.NoError(e, resp.Decode(&sent))
	require.Equal(e, resp.ID(), sent.InvocationID)
	require.Regexp(e, `^inv_1[0-9A-Za-z]{33}$`, sent.InvocationID)
	return sent
}

// awaitRecords waits for n records and requires that there are no more.
func (e *env) awaitRecords(id string, n int) []string {
	e.Helper()
	values := e.recorder.Await(e.Context(), id, n, testTimeout)
	require.Len(e, values, n, "records of %s", id)
	return values
}

// failure is the JSON body of an error response of the ingress or of an invocation.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Source  string `json:"source"`
}

// decodeFailure decodes an error body.
func (e *env) decodeFailure(resp harness.Response, status int) failure {
	e.Helper()
	require.Equal(e, status, resp.Status, "%s", resp.Body)
	var f failure
	require.NoError(e, json.Unmarshal(resp.Body, &f))
	require.Equal(e, f.Source, resp.Source(), "header and body must name the same source")
	return f
}

// startIdempotent invokes the handler one-way with an idempotency key, so that its result is
// retained, and returns the id of the invocation.
func (e *env) startIdempotent(path string, in any) string {
	e.Helper()
	return e.send(path, in, "idempotency-key", e.id("begin", path)).InvocationID
}

// result waits for the result of an invocation, which must succeed.
func (e *env) result(id string, out any) {
	e.Helper()
	require.NoError(e, e.attach(id).Decode(out))
}

// awaitFailure waits for the terminal error of an invocation.
func (e *env) awaitFailure(id string, status int) failure {
	e.Helper()
	resp, err := e.server.Client.Attach(e.bounded(), id)
	require.NoError(e, err)
	return e.decodeFailure(resp, status)
}

// languagesWith returns the running languages that have the feature.
func (e *env) languagesWith(feature string) []string {
	var names []string
	for _, l := range e.suite.langs {
		if l.hasFeature(feature) {
			names = append(names, l.name)
		}
	}
	return names
}
