package ingress

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

var (
	knownID    = ids.NewInvocation(7, [16]byte{15: 9})
	workflowO  = ids.NewInvocation(ids.HashKey("o/1"), ids.WorkflowUnique("", "Order", "o/1"))
	greetI     = ids.NewInvocation(ids.HashKey("i"), ids.IdempotentUnique("", "Greeter", "", "greet", "i"))
	counterAI  = ids.NewInvocation(ids.HashKey("a"), ids.IdempotentUnique("", "Counter", "a", "add", "i"))
	greetEmpty = ids.NewInvocation(ids.HashKey(""), ids.IdempotentUnique("", "Greeter", "", "greet", ""))
)

// pathsOf are the paths of an invocation for GET; %s is the verb.
var pathsOf = map[string]ids.Invocation{
	"/platform/%s/" + knownID.String():                 knownID,
	"/restate/%s/" + knownID.String() + "/":            knownID,
	"/platform/invocation/" + knownID.String() + "/%s": knownID,
	"/restate/invocation/" + knownID.String() + "/%s":  knownID,
	"/platform/invocation/Greeter/greet/i/%s":          greetI,
	"/platform/invocation/Counter/a/add/i/%s":          counterAI,
	"/restate/invocation/Counter/%%61/add/i/%s":        counterAI,
	"/platform/workflow/Order/o%%2F1/%s":               workflowO,
	"/restate/workflow/Order/o%%2F1/%s":                workflowO,
}

var bodiesOf = map[string]ids.Invocation{
	`{"target":"invocation","invocationId":"` + knownID.String() + `"}`:                                                     knownID,
	`{"target":"workflow","workflowName":"Order","workflowKey":"o/1"}`:                                                      workflowO,
	`{"target":"workflow","workflowName":"Order","workflowKey":"o/1","scope":null}`:                                         workflowO,
	`{"target":"idempotentInvocation","service":"Greeter","handler":"greet","idempotencyKey":"i"}`:                          greetI,
	`{"target":"idempotentInvocation","service":"Greeter","handler":"greet","idempotencyKey":""}`:                           greetEmpty,
	` {"target":"idempotentInvocation","service":"Counter","key":"a","handler":"add","idempotencyKey":"i","new":1} ` + "\n": counterAI,
}

func TestGettingAResult(t *testing.T) {
	answer := func(_ context.Context, id ids.Invocation) (routing.Response, error) {
		return routing.Response{ID: id, Target: machine.Target{Service: "Greeter", Handler: "greet"}, Result: journal.Result{Value: []byte(`"x"`)}, ExpiresAt: clock.Add(time.Hour)}, nil
	}
	for _, verb := range []string{"attach", "output"} {
		check := func(method, path, body string, id ids.Invocation) {
			f := &fakeInvocations{}
			if verb == "attach" {
				f.attach = answer
			} else {
				f.output = answer
			}
			w := do(testServer(t, Config{}, f), method, path, body)
			require.Equal(t, 200, w.Code, "%s %s: %s", method, path, w.Body)
			require.Equal(t, `"x"`, w.Body.String())
			require.Equal(t, []ids.Invocation{id}, f.ids, path)
			require.Equal(t, id.String(), w.Header().Get("x-platform-id"))
			require.Equal(t, "application/json", w.Header().Get("content-type"))
			require.Equal(t, "2026-11-20T19:13:50Z", w.Header().Get("idempotency-expires"))
		}
		for path, id := range pathsOf {
			check("GET", fmt.Sprintf(path, verb), "", id)
		}
		for body, id := range bodiesOf {
			check("POST", "/platform/"+verb, body, id)
			check("POST", "/restate/"+verb+"/", body, id)
		}
	}
}

func TestLookupOnlyComputes(t *testing.T) {
	for body, id := range bodiesOf {
		f := &fakeInvocations{}
		w := do(testServer(t, Config{}, f), "POST", "/platform/lookup", body)
		require.Equal(t, 200, w.Code, w.Body)
		require.Equal(t, `{"invocationId":"`+id.String()+`"}`, w.Body.String())
		require.Empty(t, f.ids)
	}
}

func TestNoResult(t *testing.T) {
	for _, tc := range []struct {
		err     error
		status  int
		message string
	}{
		{routing.ErrNotFound, 404, "invocation not found"},
		{fmt.Errorf("output: %w", routing.ErrNotReady), 470, "the invocation exists but has not completed yet"},
		{&routing.UnavailableError{}, 503, "can be retried safely"},
	} {
		f := &fakeInvocations{}
		f.output = func(context.Context, ids.Invocation) (routing.Response, error) { return routing.Response{}, tc.err }
		f.attach = f.output
		s := testServer(t, Config{}, f)
		requireProblem(t, do(s, "GET", "/platform/output/"+knownID.String(), ""), tc.status, tc.message)
		requireProblem(t, do(s, "GET", "/platform/workflow/Order/o/attach", ""), tc.status, tc.message)
	}
}

func TestUnknownInvocationsOfUnknownHandlers(t *testing.T) {
	s := testServer(t, Config{}, &fakeInvocations{})
	for path, why := range map[string]string{
		"/platform/workflow/Nope/k/output":                "invocation not found: service 'Nope' is not registered",
		"/platform/workflow/Ordr/k/attach":                "invocation not found: service 'Ordr' is not registered; did you mean 'Order'?",
		"/platform/workflow/Greeter/k/attach":             "invocation not found: 'Greeter' is not a workflow",
		"/platform/invocation/Greeter/nope/key/output":    "invocation not found: service 'Greeter' has no handler 'nope'",
		"/platform/invocation/Nope/greet/key/output":      "invocation not found: service 'Nope' is not registered",
		"/platform/invocation/Counter/k/nope/key/attach":  "invocation not found: service 'Counter' has no handler 'nope'",
		"/platform/invocation/Counter/add/key/attach":     "invocation not found: 'Counter' is a virtual object, whose handlers are called with a key: Counter/{key}/{handler}",
		"/platform/invocation/Greeter/k/greet/key/output": "invocation not found: 'Greeter' is a service without keys",
	} {
		requireProblem(t, do(s, "GET", path, ""), 404, why)
	}
	for body, why := range map[string]string{
		`{"target":"workflow","workflowName":"Greeter","workflowKey":"k"}`:                                    "invocation not found: 'Greeter' is not a workflow",
		`{"target":"idempotentInvocation","service":"Countr","key":"k","handler":"add","idempotencyKey":"i"}`: "did you mean 'Counter'?",
		`{"target":"idempotentInvocation","service":"Counter","handler":"add","idempotencyKey":"i"}`:          "invocation not found: 'Counter' is a virtual object",
		`{"target":"idempotentInvocation","service":"Counter","key":"","handler":"add","idempotencyKey":"i"}`: "invocation not found",
		`{"target":"invocation","invocationId":"` + knownID.String() + `"}`:                                   "invocation not found",
	} {
		requireProblem(t, do(s, "POST", "/platform/output", body), 404, why)
	}
	w := do(s, "GET", "/platform/workflow/Order/k/output", "")
	require.Contains(t, w.Body.String(), `"invocation not found"`)
}

func TestResultOfAHandlerThatIsGone(t *testing.T) {
	f := &fakeInvocations{output: func(context.Context, ids.Invocation) (routing.Response, error) {
		return routing.Response{Target: machine.Target{Service: "Gone", Handler: "x"}, Result: journal.Result{Value: []byte("x")}}, nil
	}}
	w := do(testServer(t, Config{}, f), "GET", "/platform/output/"+knownID.String(), "")
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Header().Get("content-type"))
	require.Equal(t, knownID.String(), w.Header().Get("x-platform-id"))
}

func TestBadTargets(t *testing.T) {
	for body, message := range map[string]string{
		``:      "it is empty",
		`{`:     "expected a JSON object",
		`[]`:    "expected a JSON object, not array",
		`"x"`:   "expected a JSON object, not string",
		`{} {}`: "more than one JSON value",
		`{}`:    "field 'target' is missing",
		`{"target":"invocation","Target":"workflow"}`: "field 'Target' is given twice",
		`{"target":"x"}`:        "field 'target' is 'x'",
		`{"target":1}`:          "field 'target' must be a string, not number",
		`{"target":"workflow"}`: "field 'workflowName' is missing",
		`{"target":"workflow","workflowName":"Order"}`:                                             "field 'workflowKey' is missing",
		`{"target":"workflow","workflowName":"Order","workflowKey":[]}`:                            "field 'workflowKey' must be a string, not array",
		`{"target":"workflow","workflowName":"Order","workflowKey":"o","scope":"s"}`:               "experimental-enable-vqueues",
		`{"target":"invocation"}`:                                                                  "field 'invocationId' is missing",
		`{"target":"invocation","invocationId":"inv_9"}`:                                           "bad invocation id 'inv_9'",
		`{"target":"idempotentInvocation","handler":"h","idempotencyKey":"i"}`:                     "field 'service' is missing",
		`{"target":"idempotentInvocation","service":"s","idempotencyKey":"i"}`:                     "field 'handler' is missing",
		`{"target":"idempotentInvocation","service":"s","handler":"h"}`:                            "field 'idempotencyKey' is missing",
		`{"target":"idempotentInvocation","service":"s","handler":"h","idempotencyKey":{"a":"b"}}`: "field 'idempotencyKey' must be a string, not object",
	} {
		for _, verb := range []string{"lookup", "attach", "output"} {
			f := &fakeInvocations{}
			requireProblem(t, do(testServer(t, Config{}, f), "POST", "/platform/"+verb, body), 400, message)
			require.Empty(t, f.ids)
		}
	}
	s := testServer(t, Config{RequestSizeLimit: 5}, &fakeInvocations{})
	requireProblem(t, do(s, "POST", "/platform/lookup", `{"target":"x"}`), 413, "larger than 5 bytes")
}

func TestLargeTargets(t *testing.T) {
	body := func(size int) string {
		text := `{"target":"invocation","invocationId":"` + knownID.String() + `"}`
		return text + strings.Repeat(" ", size-len(text))
	}
	s := testServer(t, Config{}, &fakeInvocations{})
	require.Equal(t, 200, do(s, "POST", "/platform/lookup", body(maxTarget)).Code)
	for _, size := range []int{maxTarget + 1, maxTarget + bodyChunk, 8 * maxTarget} {
		requireProblem(t, do(s, "POST", "/platform/lookup", body(size)), 413, "larger than 262144 bytes")
	}
}

func TestBadIDsInPaths(t *testing.T) {
	s := testServer(t, Config{}, &fakeInvocations{})
	for _, id := range []string{"x", "inv_2", knownID.String() + "0", "%ff", "dp_" + knownID.String()[4:]} {
		requireProblem(t, do(s, "GET", "/platform/attach/"+id, ""), 400, "bad ")
		requireProblem(t, do(s, "GET", "/platform/invocation/"+id+"/output", ""), 400, "bad ")
	}
	requireProblem(t, do(s, "GET", "/platform/workflow/Order//attach", ""), 400, "bad path: the segment {key} is empty")
}
