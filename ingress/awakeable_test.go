package ingress

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/cluster/routing"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
)

func complete(t *testing.T, f *fakeInvocations, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(t.Context())
	testServer(t, Config{RequestSizeLimit: 100}, f).handler().ServeHTTP(answer, r)
	return answer
}

func TestCompletingAwakeables(t *testing.T) {
	const awakeable = "sign_1ASNFZ4mrze8AESIzRFVmd4iZqrvM3e7_AAAAEQ"
	id, err := ids.ParseAwakeable(awakeable)
	require.NoError(t, err)
	signal := func(r journal.Result) *machine.Signal {
		return &machine.Signal{Target: id.Invocation, ID: journal.NumberedSignal(17), Result: &r}
	}
	for path, want := range map[string]*machine.Signal{
		"/platform/awakeables/" + awakeable + "/resolve":  signal(journal.Result{Value: []byte("because")}),
		"/restate/awakeables/" + awakeable + "/resolve/":  signal(journal.Result{Value: []byte("because")}),
		"/platform/a/" + awakeable + "==/resolve":         signal(journal.Result{Value: []byte("because")}),
		"/restate/a/" + awakeable + "/reject":             signal(journal.Result{Failure: &journal.Failure{Code: 500, Message: "because"}}),
		"/platform/awakeables/" + awakeable + "/reject?x": signal(journal.Result{Failure: &journal.Failure{Code: 500, Message: "because"}}),
	} {
		f := &fakeInvocations{}
		answer := complete(t, f, "POST", path, "because")
		require.Equal(t, http.StatusAccepted, answer.Code, path)
		require.Empty(t, answer.Body.String())
		require.Equal(t, []*machine.Signal{want}, f.signals, path)
	}
}

func TestNamedSignals(t *testing.T) {
	to := "/invocation/" + knownID.String() + "/signal/go%2Fon/"
	value, failure := journal.Result{Value: []byte("because")}, journal.Result{Failure: &journal.Failure{Code: 500, Message: "because"}}
	for path, want := range map[string]*journal.Result{
		"/platform" + to + "resolve": &value,
		"/restate" + to + "reject":   &failure,
	} {
		f := &fakeInvocations{}
		answer := complete(t, f, "POST", path, "because")
		require.Equal(t, http.StatusAccepted, answer.Code, path)
		require.Empty(t, answer.Body.String())
		require.Equal(t, []*machine.Signal{{Target: knownID, ID: journal.NamedSignal("go/on"), Result: want}}, f.signals)
	}
	for _, c := range []struct {
		method, path string
		err          error
		status       int
		message      string
	}{
		{"POST", to + "resolve", routing.ErrNotFound, 404, "invocation not found"},
		{"POST", to + "resolve", routing.ErrEnded, 409, "the invocation has ended"},
		{"POST", to + "resolve", routing.ErrSignalsFull, 409, "the invocation accepts no more signals"},
		{"POST", to + "reject", &routing.UnavailableError{}, 503, "a retry may have a second effect"},
		{"POST", to + "forget", nil, 404, "not found"},
		{"GET", to + "resolve", nil, 405, "method GET is not allowed here"},
		{"POST", "/invocation/inv_1/signal/x/resolve", nil, 400, "bad invocation id"},
	} {
		f := &fakeInvocations{signalErr: c.err}
		answer := complete(t, f, c.method, "/platform"+c.path, "x")
		require.Equal(t, c.status, answer.Code, c.path)
		require.Contains(t, answer.Body.String(), c.message)
	}
}

func TestAwakeablesThatCannotBeCompleted(t *testing.T) {
	const good = "/platform/awakeables/sign_1ASNFZ4mrze8AESIzRFVmd4iZqrvM3e7_AAAAEQ"
	reserved := ids.Awakeable{Invocation: knownID, Signal: 1}.String()
	for _, c := range []struct {
		method, path string
		status       int
		message      string
	}{
		{"POST", "/platform/awakeables/prom_1x/resolve", 400, "bad awakeable id 'prom_1x'"},
		{"POST", "/platform/awakeables/" + reserved + "/resolve", 400, "its signal 1 is reserved"},
		{"POST", good + "/forget", 404, "not found"},
		{"GET", good + "/resolve", 405, "method GET is not allowed here"},
	} {
		f := &fakeInvocations{}
		answer := complete(t, f, c.method, c.path, "x")
		require.Equal(t, c.status, answer.Code, c.path)
		require.Contains(t, answer.Body.String(), c.message)
		require.Empty(t, f.signals)
	}
	f := &fakeInvocations{}
	require.Equal(t, http.StatusRequestEntityTooLarge, complete(t, f, "POST", good+"/resolve", strings.Repeat("x", 101)).Code)

	for _, gone := range []error{routing.ErrNotFound, routing.ErrEnded} {
		f.signalErr = gone
		require.Equal(t, http.StatusAccepted, complete(t, f, "POST", good+"/resolve", "x").Code)
	}
	f.signalErr = routing.ErrSignalsFull
	answer := complete(t, f, "POST", good+"/resolve", "x")
	require.Equal(t, http.StatusConflict, answer.Code)
	require.Contains(t, answer.Body.String(), "the invocation accepts no more signals")
	f.signalErr = &routing.UnavailableError{}
	answer = complete(t, f, "POST", good+"/resolve", "x")
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Contains(t, answer.Body.String(), "can be retried safely")
}
