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

// limit is how long anything that a case waits for may take.
const limit = 45 * time.Second

// tick is how often a condition is looked at.
const tick = 20 * time.Millisecond

// testCase holds one feature against the services of one language.
type testCase struct {
	name string
	run  func(e *env)
}

// env is what a case works with.
type env struct {
	*testing.T
	suite    *suite
	lang     string
	langs    []string // all that are running
	server   *harness.Server
	service  *harness.Service
	recorder *harness.Recorder
}

// id returns a name that no other case uses, followed by the given parts.
func (e *env) id(parts ...string) string {
	name := strings.NewReplacer("/", "-", "#", "-").Replace(e.Name())
	return strings.Join(append([]string{name}, parts...), "-")
}

// path addresses a handler of this language's service: a service and a handler,
// or an object, its key and a handler.
func (e *env) path(service string, rest ...string) string {
	return harness.Path(append([]string{e.lang + service}, rest...)...)
}

// bounded returns a context that ends with the case or when time is up.
func (e *env) bounded() context.Context {
	ctx, cancel := context.WithTimeout(e.Context(), limit)
	e.Cleanup(cancel)
	return ctx
}

// encode returns in as JSON; nil is no body at all.
func (e *env) encode(in any) []byte {
	if in == nil {
		return nil
	}
	body, err := json.Marshal(in)
	require.NoError(e, err)
	return body
}

// try calls the handler and returns whatever the answer is.
func (e *env) try(path string, in any, header ...string) harness.Response {
	e.Helper()
	answer, err := e.server.Client.Call(e.bounded(), path, e.encode(in), header...)
	require.NoError(e, err)
	return answer
}

// call calls the handler, which must succeed, and decodes its answer into out.
func (e *env) call(path string, in, out any, header ...string) harness.Response {
	e.Helper()
	answer := e.try(path, in, header...)
	require.Equal(e, http.StatusOK, answer.Status, "%s", answer.Body)
	require.NotEmpty(e, answer.ID())
	if out != nil {
		require.NoError(e, answer.Decode(out))
	}
	return answer
}

// together makes n requests at the same time and returns the answers, which must
// all be 200.
func (e *env) together(n int, request func(ctx context.Context, i int) (harness.Response, error)) []harness.Response {
	e.Helper()
	ctx := e.bounded()
	answers, errs := make([]harness.Response, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i], errs[i] = request(ctx, i) })
	}
	wg.Wait()
	for i, answer := range answers {
		require.NoError(e, errs[i])
		require.Equal(e, http.StatusOK, answer.Status, "%s", answer.Body)
	}
	return answers
}

// send invokes the handler one-way.
func (e *env) send(path string, in any, header ...string) harness.Sent {
	e.Helper()
	answer, err := e.server.Client.Send(e.bounded(), path, e.encode(in), header...)
	require.NoError(e, err)
	require.Equal(e, http.StatusAccepted, answer.Status, "%s", answer.Body)
	var sent harness.Sent
	require.NoError(e, answer.Decode(&sent))
	require.Equal(e, answer.ID(), sent.InvocationID)
	require.Regexp(e, `^inv_1[0-9A-Za-z]{33}$`, sent.InvocationID)
	return sent
}

// recorded waits for n records and requires that there are no more than that.
func (e *env) recorded(id string, n int) []string {
	e.Helper()
	values := e.recorder.Await(e.Context(), id, n, limit)
	require.Len(e, values, n, "records of %s", id)
	return values
}

// failure is the JSON body of an error of the ingress or of an invocation.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Source  string `json:"source"`
}

// failed decodes an error body.
func (e *env) failed(answer harness.Response, status int) failure {
	e.Helper()
	require.Equal(e, status, answer.Status, "%s", answer.Body)
	var f failure
	require.NoError(e, json.Unmarshal(answer.Body, &f))
	require.Equal(e, f.Source, answer.Source(), "header and body must name the same source")
	return f
}

// begin invokes the handler one-way in a way that its result is kept, and returns
// the id of the invocation.
func (e *env) begin(path string, in any) string {
	e.Helper()
	return e.send(path, in, "idempotency-key", e.id("begin", path)).InvocationID
}

// result waits for the result of an invocation, which must succeed.
func (e *env) result(id string, out any) {
	e.Helper()
	require.NoError(e, e.attach(id).Decode(out))
}

// refused waits for the terminal error of an invocation.
func (e *env) refused(id string, status int) failure {
	e.Helper()
	answer, err := e.server.Client.Attach(e.bounded(), id)
	require.NoError(e, err)
	return e.failed(answer, status)
}

// offering returns the running languages that have the feature.
func (e *env) offering(feature string) []string {
	var names []string
	for _, l := range e.suite.langs {
		if l.offers(feature) {
			names = append(names, l.name)
		}
	}
	return names
}
