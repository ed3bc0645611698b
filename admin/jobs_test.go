package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/metadata"
)

// shownJob is a part of a job as clients read it.
type shownJob struct {
	ID, State string
	Filter    map[string][]string
	Matched   uint64
}

// startJob starts a job and returns it.
func startJob(t *testing.T, w *testServer, body string) (view shownJob) {
	t.Helper()
	answer := requireStatus(t, http.StatusAccepted, w.ask(t, "POST", "/jobs", body))
	require.NoError(t, json.Unmarshal([]byte(answer), &view))
	return view
}

func TestJobsAreStartedListedAndStopped(t *testing.T) {
	w := atLevel4(t)
	first := startJob(t, w, `{"operation":"kill","filter":{"service":["A","B"],"key":"k,1"}}`)
	require.Equal(t, "running", first.State)
	require.Equal(t, []string{"A", "B"}, first.Filter["service"])
	require.Equal(t, []string{"k,1"}, first.Filter["key"])
	require.NotContains(t, first.Filter["status"], "completed", "the operation has no effect on them")
	require.Contains(t, first.Filter["status"], "suspended")

	id := ids.NewInvocation(7, [16]byte{15: 1}).String()
	second := startJob(t, w, fmt.Sprintf(`{"operation":"resume","invocation_ids":[%q,%[1]q],"deployment":"latest"}`, id))
	require.EqualValues(t, 1, second.Matched, "an id that is given twice counts once")
	stored, _ := w.store.Job(second.ID)
	require.Equal(t, []string{id}, stored.Batch)

	var list struct{ Jobs []shownJob }
	require.NoError(t, json.Unmarshal([]byte(requireStatus(t, http.StatusOK, w.ask(t, "GET", "/jobs", ""))), &list))
	require.Equal(t, []string{second.ID, first.ID}, []string{list.Jobs[0].ID, list.Jobs[1].ID})

	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "DELETE", "/jobs/"+first.ID, "")), `"state":"stopped"`)
	require.Contains(t, requireStatus(t, http.StatusOK, w.ask(t, "GET", "/jobs/"+first.ID, "")), `"state":"stopped"`)
	for _, method := range []string{"GET", "DELETE"} {
		require.Contains(t, requireStatus(t, http.StatusNotFound, w.ask(t, method, "/jobs/job_1", "")), "job 'job_1' does not exist")
	}
}

func TestJobRequestsAreChecked(t *testing.T) {
	w := atLevel4(t)
	for body, says := range map[string]string{
		`{"operation":"destroy","filter":{"status":"running"}}`:                                           `one of cancel, kill, pause, purge, restart-as-new, resume, not \"destroy\"`,
		`{"filter":{"status":"running"}}`:                                                                 "'operation' must be one of",
		`{"operation":"kill"}`:                                                                            "either the field 'filter' or the field 'invocation_ids'",
		`{"operation":"kill","filter":{"status":"running"},"invocation_ids":[]}`:                          "either the field 'filter' or the field 'invocation_ids'",
		`{"operation":"kill","filter":{}}`:                                                                "would select all invocations",
		`{"operation":"kill","filter":{"service":[]}}`:                                                    "'filter.service' is empty",
		`{"operation":"kill","filter":{"status":"running","service":[]}}`:                                 "'filter.service' is empty",
		`{"operation":"kill","filter":{"status":"running","deployment":null}}`:                            "'filter.deployment' is empty",
		`{"operation":"kill","filter":{"created_before":[1,2]}}`:                                          "'created_before' must have one value",
		`{"operation":"kill","filter":{"servce":"A"}}`:                                                    "unknown field 'filter.servce'; did you mean 'service'?",
		`{"operation":"kill","filter":{"limit":5}}`:                                                       "unknown field 'filter.limit'",
		`{"operation":"kill","filter":{"status":"walking"}}`:                                              `\"walking\" is not a status`,
		`{"operation":"kill","filter":{"service":{"a":1}}}`:                                               "'filter.service' is invalid",
		`{"operation":"kill","invocation_ids":["x"]}`:                                                     "'invocation_ids[0]' is invalid",
		`{"operation":"kill","filter":{"status":"running"},"deployment":"keep"}`:                          "'deployment' is for resume and restart-as-new only",
		`{"operation":"resume","filter":{"status":"paused"},"deployment":"x"}`:                            "'deployment' is invalid",
		`{"operation":"kill","filter":{"status":"running"},"reason":"x"}`:                                 "'reason' is for pause only",
		`{"operation":"kill","filter":{"status":"running"},"unknown":1}`:                                  "unknown field 'unknown'",
		`{"operation":"kill","invocation_ids":[` + strings.Repeat(`"x",`, metadata.MaxJobBatch) + `"x"]}`: "at most 1000 are allowed",
	} {
		require.Contains(t, requireStatus(t, http.StatusUnprocessableEntity, w.ask(t, "POST", "/jobs", body)), says, body)
	}
	requireStatus(t, http.StatusBadRequest, w.ask(t, "POST", "/jobs", `{"operation":"pause","filter":{"status":"running"},"reason":"`+strings.Repeat("x", rest.MaxReason+1)+`"}`))
	require.Empty(t, w.store.Jobs())
}

func TestJobsAreLimited(t *testing.T) {
	w := atLevel4(t)
	for range metadata.MaxRunningJobs {
		_, err := w.store.CreateJob(t.Context(), metadata.Job{Operation: "kill"})
		require.NoError(t, err)
	}
	require.Contains(t, requireStatus(t, http.StatusTooManyRequests, w.ask(t, "POST", "/jobs", `{"operation":"kill","filter":{"status":"running"}}`)), "too many jobs are running")
}

func TestJobsNeedTheirFeatureLevel(t *testing.T) {
	w := newTestServer(t, nil)
	require.Contains(t, requireStatus(t, http.StatusConflict, w.ask(t, "POST", "/jobs", `{"operation":"kill","filter":{"status":"running"}}`)), "needs feature level 4")
}
