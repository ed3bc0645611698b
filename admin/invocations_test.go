package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/partition/listing"
	"platform/partition/machine"
)

func TestListInvocationsPassesTheFiltersOn(t *testing.T) {
	w := newTestServer(t, nil)
	require.Equal(t, http.StatusOK, w.ask(t, "GET", "/invocations", "").StatusCode)
	require.Equal(t, Query{Limit: 100}, w.query)

	const dp = "dp_10000000000000000000001"
	answer := w.ask(t, "GET", "/invocations?status=running,backing-off&status=paused&service=A&service=B,C&handler=h&key=a,b&key=c&scope=s,t&deployment="+dp+
		"&result=failure,killed&limit_key=l&idempotency_key=a,b&invoked_by=service&error_code=RT0007,500&failure_group=fg_0011223344556677"+
		"&created_after=2023-11-14T22:13:20Z&created_before=1700000000001&modified_after=1&modified_before=2&completed_after=3&completed_before=4"+
		"&limit=7&cursor=xyz&oldest_first=true&sort=modified&partial=true", "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	filter := listing.Filter{
		Statuses: []listing.Status{listing.Running, listing.BackingOff, listing.Paused},
		Services: []string{"A", "B", "C"}, Handlers: []string{"h"}, Keys: []string{"a,b", "c"}, Scopes: []string{"s", "t"},
		Deployments: []ids.Deployment{dp}, Results: []listing.Result{listing.Failure, listing.Killed}, LimitKeys: []string{"l"}, IdempotencyKeys: []string{"a,b"},
		Sources: []machine.SourceKind{machine.FromService}, ErrorCodes: []string{"RT0007", "500"},
		Group:   listing.GroupID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77},
		Created: listing.Range{From: 1_700_000_000_000, Before: 1_700_000_000_001}, Modified: listing.Range{From: 1, Before: 2}, Completed: listing.Range{From: 3, Before: 4},
	}
	require.Equal(t, Query{Filter: filter, Limit: 7, Cursor: "xyz", OldestFirst: true, ByModified: true, Partial: true}, w.query)

	w.counts = &Counts{Total: 3, ByStatus: map[Status]int{StatusPaused: 3}, ByResult: map[Result]int{}, ByService: []HandlerCounts{}}
	require.JSONEq(t, `{"total":3,"by_status":{"paused":3},"by_result":{},"by_service":[],"complete":true,"as_of":"1970-01-01T00:00:00.000000000Z"}`,
		text(t, w.ask(t, "GET", "/invocations/counts?service=A&partial=true", "")))
	require.Equal(t, Query{Filter: listing.Filter{Services: []string{"A"}}, Partial: true}, w.query)
	w.counts.Missing = []uint32{4}
	require.Contains(t, text(t, w.ask(t, "GET", "/invocations/counts", "")), `"complete":false,"missing_partitions":[4]`)

	for _, bad := range []string{"result=good", "invoked_by=me", "created_after=yesterday", "created_before=-1", "sort=age", "failure_group=1", "partial=maybe"} {
		for _, path := range []string{"/invocations?", "/invocations/counts?", "/failures?"} {
			if path != "/invocations?" && bad == "sort=age" {
				continue
			}
			rejected := w.ask(t, "GET", path+bad, "")
			require.Equal(t, http.StatusBadRequest, rejected.StatusCode, path+bad)
			requireError(t, rejected, text(t, rejected), "", "The query parameter '"+strings.Split(bad, "=")[0]+"' is invalid")
		}
	}

	w.err = rest.ErrCursor
	rejected := w.ask(t, "GET", "/invocations?cursor=xyz", "")
	require.Equal(t, http.StatusBadRequest, rejected.StatusCode)
	requireError(t, rejected, text(t, rejected), "", "The query parameter 'cursor' is invalid")
}

func fullInvocation() *Invocation {
	return &Invocation{
		ID: ids.NewInvocation(7, [16]byte{1}).String(), Target: "Counter/k/add", TargetServiceName: "Counter", TargetServiceKey: "k",
		TargetHandlerName: "add", TargetServiceType: "virtual_object", Scope: "s", LimitKey: "a/b", VQueueID: "vq_1x", Status: StatusBackingOff,
		CreatedAt: 1_700_000_000_001, ModifiedAt: 1_700_000_000_002, ScheduledStartAt: 1_700_000_000_003,
		RunningAt: 1_700_000_000_004, CompletedAt: 1_700_000_000_005,
		IdempotencyKey: ptr(""), InvokedBy: "service", InvokedByID: "inv_x", InvokedByTarget: "Greeter/greet",
		PinnedDeploymentID: "dp_1x", PinnedProtocolVersion: 6, JournalSize: 3, RetryCount: 2, LastStartAt: 1_700_000_000_007, NextRetryAt: 1_700_000_000_006,
		LastFailure: "boom", LastFailureErrorCode: "RT0007", LastAttemptDeployment: "dp_1x", LastAttemptServer: "sdk/1.0.0",
		CompletionResult: "failure", CompletionFailure: "[500] boom",
	}
}

func TestInvocationViews(t *testing.T) {
	w := newTestServer(t, nil)
	w.page = Page{Next: "next", Invocations: []*Invocation{fullInvocation(), {
		ID: "inv_2", Target: "Greeter/greet", TargetServiceName: "Greeter", TargetHandlerName: "greet", TargetServiceType: "service",
		Status: StatusRunning, CreatedAt: 1_700_000_000_001, InvokedBy: "ingress",
	}}}
	goldenJSON(t, "invocations", text(t, w.ask(t, "GET", "/invocations", "")))

	path := "/invocations/" + fullInvocation().ID
	w.invocation = fullInvocation()
	require.NotContains(t, text(t, w.ask(t, "GET", path, "")), `"journal"`)
	require.False(t, w.withEvents)
	w.invocation.Journal = []Entry{}
	require.Contains(t, text(t, w.ask(t, "GET", path+"?journal=true", "")), `"journal":[]`)
	require.True(t, w.withEvents)
	w.invocation.Journal = []Entry{
		{Index: 0, Type: "Command: Input", AppendedAt: 1_700_000_000_001, RawLength: 12},
		{Index: 1, Type: "Command: Call", Name: "n", Completed: ptr(false), InvokedID: "inv_3", InvokedTarget: "A/b"},
		{Index: 2, Type: "Command: Sleep", Completed: ptr(true), SleepWakeupAt: 1_700_000_000_001},
	}
	goldenJSON(t, "invocation", text(t, w.ask(t, "GET", path+"?journal=true", "")))
}
