package query

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/target"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// TestFailureMetadataIsAList pins the form that clients parse, in the order of the handler.
func TestFailureMetadataIsAList(t *testing.T) {
	const want = `{"Failure":{"code":418,"message":"no","metadata":[{"key":"b","value":"1"},{"key":"a","value":"2"}]}}`
	stored := &journal.Result{Failure: &journal.Failure{Code: 418, Message: "no", Metadata: []journal.Metadata{{Key: "b", Value: "1"}, {Key: "a", Value: "2"}}}}
	sent := &service.Failure{Code: 418, Message: "no", Metadata: []*service.FailureMetadata{{Key: "b", Value: "1"}, {Key: "a", Value: "2"}}}
	for _, v := range []any{entryWriter{}.resultOf(stored), entryWriter{}.result(nil, sent)} {
		got, err := json.Marshal(v)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
	got, err := json.Marshal(entryWriter{}.resultOf(&journal.Result{Failure: &journal.Failure{Code: 500}}))
	require.NoError(t, err)
	require.JSONEq(t, `{"Failure":{"code":500,"message":"","metadata":[]}}`, string(got))
}

// TestErrorCodeOfEvents pins both names of the key, the second for existing clients.
func TestErrorCodeOfEvents(t *testing.T) {
	body := transientError(&machine.AttemptFailure{Code: 500, Message: "no", ErrorCode: "RT0007"})
	require.Equal(t, "RT0007", body["platform_doc_error_code"])
	require.Equal(t, "RT0007", body["restate_doc_error_code"])
}

// TestRequestsHaveAllMembers pins the form of calls that clients parse: with a context, retentions,
// and a limit key only if there is one.
func TestRequestsHaveAllMembers(t *testing.T) {
	day, hour := 24*time.Hour, time.Hour+time.Millisecond
	known := &metadata.Service{Name: "Known", Handlers: []*metadata.Handler{{Name: "h", Options: metadata.Options{IdempotencyRetention: &hour}}}}
	j := &journals{session: &session{engine: NewEngine(Config{
		Registry: func() *metadata.Schemas {
			return &metadata.Schemas{Services: map[string]*metadata.Service{"Known": known}}
		},
		Defaults: func() *metadata.Defaults { return &metadata.Defaults{JournalRetention: day} },
	})}}
	w := entryWriter{
		callee: func(uint32) string { return "inv_1" }, typeOf: j.typeOf,
		retention: j.retention,
	}
	key, limit := "key", "a/b"
	for _, c := range []struct {
		request                   journal.Request
		completion, entries, also string
	}{
		{journal.Request{Service: "Known", Handler: "h"}, `{"secs":86400,"nanos":0}`, `{"secs":86400,"nanos":0}`, `"idempotency_key":null`},
		{
			journal.Request{Service: "Known", Handler: "h", IdempotencyKey: &key, LimitKey: &limit},
			`{"secs":3600,"nanos":1000000}`, `{"secs":3600,"nanos":1000000}`, `"idempotency_key":"key","limit_key":"a/b"`,
		},
		{journal.Request{Service: "Unknown", Handler: "h"}, `{"secs":0,"nanos":0}`, `{"secs":0,"nanos":0}`, `"idempotency_key":null`},
	} {
		got, err := json.Marshal(w.request(&c.request))
		require.NoError(t, err)
		require.JSONEq(t, `{"invocation_id":"inv_1","invocation_target":{"Service":{"name":"`+c.request.Service+`","handler":"h","scope":null}},
			"parameter":[],"headers":[],`+c.also+`,
			"span_context":{"span_context":{"trace_id":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"span_id":[0,0,0,0,0,0,0,0],"trace_flags":0,"is_remote":false,"trace_state":""},"cause":null},
			"completion_retention_duration":`+c.completion+`,"journal_retention_duration":`+c.entries+`}`, string(got))
	}
}

// TestTargetsHaveAllMembers pins the form of targets that clients parse: those of objects and workflows with the
// type of the handler.
func TestTargetsHaveAllMembers(t *testing.T) {
	services := map[string]*metadata.Service{
		"Cart":   {Name: "Cart", Type: metadata.VirtualObject, Handlers: []*metadata.Handler{{Name: "add", Type: target.ObjectExclusive}, {Name: "get", Type: target.ObjectShared}}},
		"Signup": {Name: "Signup", Type: metadata.Workflow, Handlers: []*metadata.Handler{{Name: "run", Type: target.WorkflowRun}, {Name: "status", Type: target.WorkflowShared}}},
	}
	j := &journals{session: &session{engine: NewEngine(Config{
		Registry: func() *metadata.Schemas { return &metadata.Schemas{Services: services} },
	})}}
	w := entryWriter{callee: func(uint32) string { return "" }, typeOf: j.typeOf, retention: j.retention}
	for _, c := range []struct{ service, handler, kind, handlerKind string }{
		{"Cart", "add", "VirtualObject", "Exclusive"},
		{"Cart", "get", "VirtualObject", "Shared"},
		{"Cart", "removed", "VirtualObject", "Exclusive"},
		{"Signup", "run", "Workflow", "Workflow"},
		{"Signup", "status", "Workflow", "Shared"},
		{"Unknown", "h", "VirtualObject", "Exclusive"},
	} {
		got, err := json.Marshal(w.request(&journal.Request{Service: c.service, Key: "k", Handler: c.handler})["invocation_target"])
		require.NoError(t, err)
		require.JSONEq(t, `{"`+c.kind+`":{"name":"`+c.service+`","key":"k","handler":"`+c.handler+`","handler_ty":"`+c.handlerKind+`","scope":null}}`, string(got))
	}
}
