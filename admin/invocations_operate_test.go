package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/internal/limits"
)

// fakeOperator records the requests and returns the configured results.
type fakeOperator struct {
	mu      sync.Mutex // covers did
	did     []string
	reject  map[ids.Invocation]error
	quietly bool // cancel and pause were no news
	change  StateChange
	update  StateUpdate
	state   State
}

func (f *fakeOperator) note(id ids.Invocation, format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, fmt.Sprintf(format, args...))
	return f.reject[id]
}

func (f *fakeOperator) Cancel(_ context.Context, id ids.Invocation) (bool, error) {
	return !f.quietly, f.note(id, "cancel")
}

func (f *fakeOperator) Kill(_ context.Context, id ids.Invocation) error { return f.note(id, "kill") }

func (f *fakeOperator) Pause(_ context.Context, id ids.Invocation, r rest.PauseRequest) (bool, error) {
	return f.quietly, f.note(id, "%s", strings.TrimSpace(fmt.Sprintf("pause by %s %s", r.By, r.Reason)))
}

func (f *fakeOperator) PauseQueue(_ context.Context, id ids.VQueue, r rest.PauseRequest) error {
	return f.note(ids.Invocation(id), "pause queue by %s %s", r.By, r.Reason)
}

func (f *fakeOperator) ResumeQueue(_ context.Context, id ids.VQueue) error {
	return f.note(ids.Invocation(id), "resume queue")
}

func (f *fakeOperator) PauseScope(_ context.Context, scope string, r rest.PauseRequest) error {
	return f.note(ids.Invocation{}, "pause scope %s by %s %s", scope, r.By, r.Reason)
}

func (f *fakeOperator) ResumeScope(_ context.Context, scope string) error {
	return f.note(ids.Invocation{}, "resume scope %s", scope)
}

func (f *fakeOperator) Resume(_ context.Context, id ids.Invocation, on DeploymentChoice) error {
	return f.note(id, "resume on %s%s", on.Which, on.ID)
}

func (f *fakeOperator) Purge(_ context.Context, id ids.Invocation) error { return f.note(id, "purge") }

func (f *fakeOperator) PurgeJournal(_ context.Context, id ids.Invocation) error {
	return f.note(id, "purge journal")
}

func (f *fakeOperator) Restart(_ context.Context, id ids.Invocation, from uint32, on DeploymentChoice) (ids.Invocation, error) {
	return ids.NewInvocation(id.PartitionKey(), [16]byte{15: 200}), f.note(id, "restart from %d on %s%s", from, on.Which, on.ID)
}

func (f *fakeOperator) Copy(_ context.Context, id ids.Invocation, input *[]byte) (ids.Invocation, error) {
	what := "the same input"
	if input != nil {
		what = fmt.Sprintf("the input %q", *input)
	}
	return ids.NewInvocation(id.PartitionKey(), [16]byte{15: 200}), f.note(id, "copy with %s", what)
}

func (f *fakeOperator) State(context.Context, Object) (State, error) { return f.state, nil }

func (f *fakeOperator) UpdateState(_ context.Context, u StateUpdate, wait bool) (StateChange, error) {
	f.update = u
	return f.change, f.note(ids.Invocation{}, "update wait=%v", wait)
}

func (f *fakeOperator) StateChange(_ context.Context, id ids.Invocation) (StateChange, error) {
	return f.change, f.reject[id]
}

var someID = ids.NewInvocation(7, [16]byte{15: 1})

func TestOperationsOnAnInvocation(t *testing.T) {
	const dp = "dp_10000000000000000000001"
	for _, c := range []struct {
		method, path string
		quietly      bool
		status       int
		did          string
	}{
		{"PATCH", "/cancel", false, 202, "cancel"},
		{"PATCH", "/cancel", true, 200, "cancel"},
		{"PATCH", "/kill", false, 200, "kill"},
		{"PATCH", "/pause", false, 202, "pause by 192.0.2.1"},
		{"PATCH", "/pause", true, 200, "pause by 192.0.2.1"},
		{"PATCH", "/pause?reason=a+deploy", false, 202, "pause by 192.0.2.1 a deploy"},
		{"PATCH", "/resume", false, 200, "resume on "},
		{"PATCH", "/resume?deployment=keep", false, 200, "resume on Keep"},
		{"PATCH", "/resume?deployment=Latest", false, 200, "resume on Latest"},
		{"PATCH", "/resume?deployment=" + dp, false, 200, "resume on Id" + dp},
		{"PATCH", "/resume?Id=" + dp, false, 200, "resume on Id" + dp},
		{"PATCH", "/purge", false, 200, "purge"},
		{"PATCH", "/purge-journal", false, 200, "purge journal"},
		{"PATCH", "/restart-as-new", false, 200, "restart from 0 on "},
		{"PATCH", "/restart-as-new?from=12&deployment=Keep", false, 200, "restart from 12 on Keep"},
		{"DELETE", "", false, 202, "cancel"},
		{"DELETE", "?mode=Kill", false, 202, "kill"},
		{"DELETE", "?mode=purge", false, 202, "purge"},
	} {
		w := newTestServer(t, nil)
		w.quietly = c.quietly
		answer := w.ask(t, c.method, "/v4/invocations/"+someID.String()+c.path, "")
		require.Equal(t, c.status, answer.StatusCode, c.path)
		require.Equal(t, []string{c.did}, w.did)
		body := text(t, answer)
		if strings.HasPrefix(c.path, "/restart") {
			require.JSONEq(t, `{"new_invocation_id":"`+ids.NewInvocation(7, [16]byte{15: 200}).String()+`"}`, body)
		} else {
			require.Empty(t, body)
		}
	}
}

func TestRejectedOperations(t *testing.T) {
	w := newTestServer(t, nil)
	path := "/invocations/" + someID.String()
	for _, c := range []struct {
		method, path, message string
		status                int
	}{
		{"PATCH", "/invocations/inv_1x/cancel", "The request field 'invocation_id' is invalid. Reason: ", 400},
		{"PATCH", path + "/resume?deployment=newest", "The query parameter 'deployment' is invalid", 400},
		{"PATCH", path + "/restart-as-new?from=-1", "The query parameter 'from' is invalid", 400},
		{"PATCH", path + "/restart-as-new?from=x", "The query parameter 'from' is invalid", 400},
		{"DELETE", path + "?mode=Stop", "The query parameter 'mode' is invalid", 400},
		{"PATCH", path + "/forget", "there is no route", 404},
		{"GET", path + "/cancel", "not allowed", 405},
	} {
		answer := w.ask(t, c.method, c.path, "")
		require.Equal(t, c.status, answer.StatusCode, c.path)
		requireError(t, answer, text(t, answer), "", c.message)
	}
	require.Empty(t, w.did)

	for _, operation := range []string{"cancel", "kill", "pause", "resume", "purge", "purge-journal", "restart-as-new"} {
		for _, c := range []struct {
			err     error
			status  int
			message string
		}{
			{rest.ErrNotFound, 404, "The requested invocation '" + someID.String() + "' does not exist"},
			{&Rejection{Status: 409, Message: "not like this"}, 409, "not like this"},
			{fmt.Errorf("%w: no leader", ErrUnavailable), 503, "no leader"},
		} {
			w.reject = map[ids.Invocation]error{someID: c.err}
			answer := w.ask(t, "PATCH", path+"/"+operation, "")
			require.Equal(t, c.status, answer.StatusCode, operation)
			requireError(t, answer, text(t, answer), "", c.message)
		}
	}
}

func TestReasonOfAPause(t *testing.T) {
	body := func(reason string) string {
		b, err := json.Marshal(map[string]any{"invocation_ids": []string{someID.String()}, "reason": reason})
		require.NoError(t, err)
		return string(b)
	}
	const batch = "/internal/invocations_batch_operations/"
	w := newTestServer(t, nil)
	require.Equal(t, http.StatusOK, w.ask(t, "POST", batch+"pause", body("a deploy")).StatusCode)
	require.Equal(t, []string{"pause by 192.0.2.1 a deploy"}, w.did)

	w = newTestServer(t, nil)
	longest := strings.Repeat("x", 512)
	require.Equal(t, http.StatusOK, w.ask(t, "POST", batch+"pause", body(longest)).StatusCode)
	require.Equal(t, http.StatusAccepted, w.ask(t, "PATCH", "/invocations/"+someID.String()+"/pause?reason="+longest, "").StatusCode)
	require.Equal(t, []string{"pause by 192.0.2.1 " + longest, "pause by 192.0.2.1 " + longest}, w.did)

	w = newTestServer(t, nil)
	answer := w.ask(t, "POST", batch+"resume", body("a deploy"))
	require.Equal(t, http.StatusUnprocessableEntity, answer.StatusCode)
	requireError(t, answer, text(t, answer), "", "the field 'reason' is for pause only")
	for _, reason := range []string{longest + "x", "two\nlines"} {
		answer = w.ask(t, "POST", batch+"pause", body(reason))
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
		requireError(t, answer, text(t, answer), "", "the reason ")
		require.Equal(t, http.StatusBadRequest, w.ask(t, "PATCH", "/invocations/"+someID.String()+"/pause?reason="+url.QueryEscape(reason), "").StatusCode)
	}
	require.Empty(t, w.did)
}

func TestBatchOperations(t *testing.T) {
	second, third := ids.NewInvocation(7, [16]byte{15: 2}), ids.NewInvocation(7, [16]byte{15: 3})
	on := map[string]string{"resume": `,"deployment":{"Id":"dp_10000000000000000000001"}`}
	for operation, did := range map[string]string{
		"cancel": "cancel", "kill": "kill", "pause": "pause by 192.0.2.1", "purge": "purge", "purge-journal": "purge journal",
		"resume": "resume on Iddp_10000000000000000000001",
	} {
		w := newTestServer(t, nil)
		w.reject = map[ids.Invocation]error{second: rest.ErrNotFound, third: &Rejection{Status: 409, Message: "busy"}}
		answer := w.ask(t, "POST", "/internal/invocations_batch_operations/"+operation,
			fmt.Sprintf(`{"invocation_ids":[%q,%q,%q,%[1]q]`+on[operation]+`}`, someID, second, third))
		require.Equal(t, http.StatusOK, answer.StatusCode)
		requested := ""
		if operation == "cancel" {
			requested = fmt.Sprintf(`"requested":[%q],`, someID)
		}
		require.JSONEq(t, fmt.Sprintf(`{"succeeded":[%q],`+requested+`"failed":[{"invocation_id":%q,"error":"The requested invocation '%s' does not exist"},{"invocation_id":%q,"error":"busy"}]}`,
			someID, second, second, third), text(t, answer))
		require.Equal(t, []string{did, did, did}, w.did)
	}
	ended := newTestServer(t, nil)
	ended.quietly = true
	require.JSONEq(t, fmt.Sprintf(`{"succeeded":[%q],"requested":[],"failed":[]}`, someID),
		text(t, ended.ask(t, "POST", "/internal/invocations_batch_operations/cancel", fmt.Sprintf(`{"invocation_ids":[%q]}`, someID))))
	w := newTestServer(t, nil)
	answer := w.ask(t, "POST", "/internal/invocations_batch_operations/restart-as-new", fmt.Sprintf(`{"invocation_ids":[%q]}`, someID))
	require.JSONEq(t, fmt.Sprintf(`{"succeeded":[{"old_invocation_id":%q,"new_invocation_id":%q}],"failed":[]}`, someID, ids.NewInvocation(7, [16]byte{15: 200})), text(t, answer))

	many := strings.Repeat(`"`+someID.String()+`",`, 1000) + `"` + someID.String() + `"`
	for body, status := range map[string]int{
		`{"invocation_ids":[` + many + `]}`:                                      400,
		`{"invocation_ids":["inv_1"]}`:                                           422,
		`{"invocation_ids":["` + someID.String() + `"],"deployment":"youngest"}`: 400,
	} {
		w := newTestServer(t, nil)
		require.Equal(t, status, w.ask(t, "POST", "/internal/invocations_batch_operations/resume", body).StatusCode, "%.40s", body)
		require.Empty(t, w.did)
	}
	unknown := w.ask(t, "POST", "/internal/invocations_batch_operations/resume", `{"invocation_ids":[],"deployment":{"Id":"dp_10000000000000000000001","Pinned":true}}`)
	require.Equal(t, 422, unknown.StatusCode)
	require.Contains(t, text(t, unknown), "unknown field 'deployment.Pinned'")
	for _, body := range []string{`{}`, `{"invocation_ids":null}`, `{"ids":[]}`, `{"invocation_ids":[],"deployment":"latest"}`} {
		require.Equal(t, 422, w.ask(t, "POST", "/internal/invocations_batch_operations/kill", body).StatusCode, body)
	}
	require.Equal(t, 404, w.ask(t, "POST", "/internal/invocations_batch_operations/forget", `{"invocation_ids":[]}`).StatusCode)
}

func TestUpdateState(t *testing.T) {
	w := seeded(t, nil)
	w.change = StateChange{ID: someID, Status: ChangeQueued}
	answer := w.ask(t, "POST", "/services/Counter/state", `{"object_key":"k","new_state":{"a":"text","b":[0,255]},"version":"v"}`)
	require.Equal(t, http.StatusAccepted, answer.StatusCode)
	require.JSONEq(t, `{"operation_id":"`+someID.String()+`","status":"queued"}`, text(t, answer))
	require.Equal(t, Object{Service: "Counter", Key: "k"}, w.update.Object)
	require.ElementsMatch(t, []StateEntry{{"a", []byte("text")}, {"b", []byte{0, 255}}}, w.update.Entries)
	require.Equal(t, "v", w.update.Version)

	w.change = StateChange{ID: someID, Status: ChangeRefused, Reason: "the state has another version"}
	answer = w.ask(t, "POST", "/services/Counter/state?wait=true", `{"object_key":"k","new_state":{}}`)
	require.Equal(t, http.StatusConflict, answer.StatusCode)
	requireError(t, answer, text(t, answer), "", "the state has another version; nothing was changed")
	require.Equal(t, []string{"update wait=false", "update wait=true"}, w.did)

	answer = w.ask(t, "GET", "/state-updates/"+someID.String(), "")
	require.JSONEq(t, `{"operation_id":"`+someID.String()+`","status":"refused","reason":"the state has another version"}`, text(t, answer))

	w.state = State{Version: "v1", Entries: []StateEntry{{"a", []byte("x")}, {"b", []byte{0xff}}}}
	require.JSONEq(t, `{"version":"v1","state":[{"key":"a","value_utf8":"x","value":"eA=="},{"key":"b","value":"/w=="}]}`,
		text(t, w.ask(t, "GET", "/services/Counter/state?object_key=k", "")))
}

// A client that edits the state reads all entries and writes them back. In JSON, keys that are not UTF-8
// look alike.
func TestUpdatesDoNotLoseEntriesThatJSONCannotContain(t *testing.T) {
	w := seeded(t, nil)
	w.change = StateChange{ID: someID, Status: ChangeApplied}
	w.state = State{Version: "v1", Entries: []StateEntry{{"a\xfe", []byte("1")}, {"a\xff", []byte("2")}}}
	update := func(fields string) (int, string) {
		answer := w.ask(t, "POST", "/services/Counter/state", `{"object_key":"k",`+fields+`}`)
		return answer.StatusCode, text(t, answer)
	}
	status, body := update(`"new_state":{"a\ufffd":"2","b":"3"},"version":"v1"`)
	require.Equal(t, 422, status)
	require.Contains(t, body, `the key \"a\\xfe\", which is not UTF-8`)
	require.Empty(t, w.did)
	for _, fields := range []string{`"new_state":{"b":"3"}`, `"new_state":{},"version":"v1"`, `"new_state":{"b":"3"},"version":"v0"`} {
		status, body := update(fields)
		require.Equal(t, 202, status, body)
	}
	require.Len(t, w.did, 3)
}

func TestRejectedUpdatesOfState(t *testing.T) {
	w := seeded(t, nil)
	for _, c := range []struct {
		service, body string
		status        int
	}{
		{"Counter", `{"new_state":{}}`, 422},
		{"Counter", `{"object_key":"k"}`, 422},
		{"Counter", `{"object_key":"k","new_state":{"a":1}}`, 422},
		{"Counter", `{"object_key":"k","new_state":{"a":[256]}}`, 422},
		{"Counter", `{"object_key":"k","new_state":{"a":[1,null]}}`, 422},
		{"Counter", `{"object_key":"k","new_state":{"a":null}}`, 422},
		{"Counter", `{"object_key":"k","new_state":{"` + strings.Repeat("k", limits.Key+1) + `":"x"}}`, 422},
		{"Counter", `{"object_key":"` + strings.Repeat("k", limits.Key+1) + `","new_state":{"k":"x"}}`, 422},
		{"Counter", `{"object_key":"` + strings.Repeat("k", limits.Names+1) + `","new_state":{}}`, 422},
		{"Counter", `{"object_key":"k","new_state":{},"scope":"s"}`, 400},
		{"Greeter", `{"object_key":"k","new_state":{}}`, 400},
		{"Nobody", `{"object_key":"k","new_state":{"a":"b"}}`, 404},
	} {
		answer := w.ask(t, "POST", "/services/"+c.service+"/state", c.body)
		require.Equal(t, c.status, answer.StatusCode, c.body)
		body := text(t, answer)
		requireError(t, answer, body, "", "")
		if strings.Contains(c.body, `"a":`) && c.status == 422 {
			require.Contains(t, body, "the field 'new_state' is invalid: the value of 'a'")
		}
	}
	require.Empty(t, w.did)
	w.change = StateChange{ID: someID, Status: ChangeApplied}
	require.Equal(t, 202, w.ask(t, "POST", "/services/Nobody/state", `{"object_key":"k","new_state":{}}`).StatusCode)
}

func TestScopedObjectsNeedFlowControl(t *testing.T) {
	const path = "/services/Counter/state?object_key=k&scope="
	off := seeded(t, nil)
	answer := off.ask(t, "GET", path+"s", "")
	require.Equal(t, http.StatusBadRequest, answer.StatusCode)
	requireError(t, answer, text(t, answer), "", "scopes need flow control, which is off")

	on := seeded(t, func(c *Config) { c.FlowControl = true })
	require.Equal(t, http.StatusOK, on.ask(t, "GET", path+"s", "").StatusCode)
	on.change = StateChange{ID: someID, Status: ChangeApplied}
	require.Equal(t, http.StatusAccepted, on.ask(t, "POST", "/services/Counter/state", `{"object_key":"k","new_state":{},"scope":"tenant-1"}`).StatusCode)
	require.Equal(t, Object{Service: "Counter", Key: "k", Scope: "tenant-1"}, on.update.Object)
	for _, body := range []string{`{"object_key":"k","new_state":{"a":"b"},"scope":"a b"}`, `{"object_key":"k","new_state":{},"scope":"*"}`} {
		answer := on.ask(t, "POST", "/services/Counter/state", body)
		require.Equal(t, http.StatusBadRequest, answer.StatusCode, body)
		requireError(t, answer, text(t, answer), "", "The request field 'scope' is invalid. Reason: bad scope")
	}
}

func TestCopies(t *testing.T) {
	path := "/invocations/" + someID.String() + "/copy"
	for body, did := range map[string]string{
		`{}`:                      "copy with the same input",
		`{"input":"{\"a\":1}"}`:   `copy with the input "{\"a\":1}"`,
		`{"input":""}`:            `copy with the input ""`,
		`{"input_base64":"/w=="}`: `copy with the input "\xff"`,
	} {
		w := newTestServer(t, nil)
		answer := w.ask(t, "POST", path, body)
		require.Equal(t, http.StatusOK, answer.StatusCode, body)
		require.JSONEq(t, `{"new_invocation_id":"`+ids.NewInvocation(7, [16]byte{15: 200}).String()+`"}`, text(t, answer))
		require.Equal(t, []string{did}, w.did)
	}
	w := newTestServer(t, nil)
	for body, status := range map[string]int{`{"input":1}`: 422, `{"input":"a","input_base64":"YQ=="}`: 422, `{"input_base64":"?"}`: 422, `{"body":"a"}`: 422, `[`: 400} {
		answer := w.ask(t, "POST", path, body)
		require.Equal(t, status, answer.StatusCode, body)
		requireError(t, answer, text(t, answer), "", "")
	}
	require.Empty(t, w.did)
}
