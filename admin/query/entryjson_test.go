package query

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

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
