package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/ids"
)

// tables responds to queries that contain a text with rows in JSON.
type tables map[string]string

// Query implements Reader.
func (t tables) Query(_ context.Context, sql string) (rows []Row, err error) {
	for part, answer := range t {
		if strings.Contains(sql, part) {
			return rows, json.Unmarshal([]byte(answer), &rows)
		}
	}
	return nil, nil
}

// Latest implements Reader.
func (t tables) Latest(service string) string {
	if service == "Gone" {
		return ""
	}
	return "dp_2"
}

// Address implements Reader.
func (t tables) Address(deployment string) string {
	return map[string]string{"dp_1a": "http://localhost:9080/"}[deployment]
}

// Visible implements Reader.
func (t tables) Visible(service, _ string) bool { return service != "Hidden" }

var mismatchRemedy = func() string {
	entry, _ := errcode.Lookup(errcode.RT0016)
	return entry.Remedy
}()

var now = time.Date(2026, 11, 20, 18, 21, 39, 0, time.UTC)

func texts(e *Explanation) (details, waits, steps []string) {
	for _, d := range e.Details {
		details = append(details, d.Title+": "+d.Text)
	}
	for _, w := range e.WaitingFor {
		waits = append(waits, string(w.Kind)+" "+w.ID+": "+w.Text)
	}
	for _, s := range e.NextSteps {
		steps = append(steps, s.Text)
	}
	return details, waits, steps
}

func TestExplanations(t *testing.T) {
	id := ids.NewInvocation(7, [16]byte{15: 1})
	awakeable := func(signal uint32) string { return ids.Awakeable{Invocation: id, Signal: signal}.String() }
	mismatch, _ := errcode.Lookup(errcode.RT0016)
	for name, test := range map[string]struct {
		row                   string // of sys_invocation, without id
		tables                tables
		summary               string
		details, waits, steps []string
	}{
		"scheduled": {
			row:     `"status":"scheduled","scheduled_start_at":"2026-11-20T18:21:49Z"`,
			summary: "It was sent with a delay and starts at 2026-11-20T18:21:49.000Z (in 10s).",
			steps:   []string{"Nothing: it starts automatically. `platform invocations cancel ID` cancels it."},
		},
		"pending on an object": {
			row:     `"status":"pending","target_service_name":"Counter","target_service_key":"alice"`,
			tables:  tables{"FROM sys_inbox": `[{"num_ahead":1}]`, "FROM sys_locks": `[{"acquired_by":"inv_1holder","target":"Counter/alice/slow","status":"running"}]`},
			summary: "It waits for Counter/alice, which only one handler at a time can hold.",
			details: []string{"Queue: 1 invocation waits before it."},
			waits:   []string{"object inv_1holder: The key is held by inv_1holder (Counter/alice/slow, running)."},
			steps:   []string{"`platform explain inv_1holder` explains the status of the holder."},
		},
		"pending in a queue": {
			row: `"status":"pending","target_service_name":"Greeter"`,
			tables: tables{
				"FROM sys_vqueues": `[{"id":"vq_1","num_ahead":12345,"status":"blocked","blocked_on":"limit-key-concurrency","blocked_on_json":"{\"scope\":\"tenant\",\"limit_key\":\"a/b\",\"blocked_level\":\"Level1\",\"blocked_rule\":\"tenant/*\"}"}]`,
				"FROM sys_user_limits WHERE scope = 'tenant' AND level = 'Level1' AND l1 = 'a'": `[{"concurrency_limit":5,"usage":5}]`,
			},
			summary: "It waits in the queue vq_1. About 12345 invocations wait before it.",
			waits:   []string{"vqueue vq_1: Rule tenant/* allows 5 concurrent invocations; 5 are running."},
			steps:   []string{"Wait, or raise the limit: `platform rules set 'tenant/*' --concurrency <n>`."},
		},
		"pending behind a limit of one": {
			row: `"status":"pending"`,
			tables: tables{
				"FROM sys_vqueues":     `[{"id":"vq_1","num_ahead":0,"status":"blocked","blocked_on":"scope-concurrency","blocked_on_json":"{\"scope\":\"acme\",\"blocked_level\":\"Scope\",\"blocked_rule\":\"acme\"}"}]`,
				"FROM sys_user_limits": `[{"concurrency_limit":1,"usage":1}]`,
			},
			summary: "It is the first in the queue vq_1.",
			waits:   []string{"vqueue vq_1: Rule acme allows 1 concurrent invocation; 1 is running."},
			steps:   []string{"Wait, or raise the limit: `platform rules set acme --concurrency <n>`."},
		},
		"pending in a paused queue": {
			row:     `"status":"pending"`,
			tables:  tables{"FROM sys_vqueues": `[{"id":"vq_1","num_ahead":0,"queue_is_paused":true,"paused_by":"::1","pause_reason":"a deploy"}]`},
			summary: "It is the first in the queue vq_1.",
			waits:   []string{"vqueue vq_1: The queue was paused by an operator from ::1: a deploy."},
			steps:   []string{"`platform vqueues resume vq_1` resumes it."},
		},
		"pending in a paused scope": {
			row: `"status":"pending"`,
			tables: tables{
				"FROM sys_vqueues":     `[{"id":"vq_1","num_ahead":0,"blocked_on":"scope-paused","blocked_on_json":"{\"scope\":\"acme\"}"}]`,
				"FROM sys_user_limits": `[{"paused_by":"::1","pause_reason":"a deploy"}]`,
			},
			summary: "It is the first in the queue vq_1.",
			waits:   []string{"vqueue vq_1: The scope acme was paused by an operator from ::1: a deploy."},
			steps:   []string{"`platform vqueues resume --scope acme` resumes it."},
		},
		"ready without deployment": {
			row:     `"status":"ready","target_service_name":"Gone"`,
			summary: "No deployment serves Gone.",
			steps:   []string{"Register one: `platform deployments register <address>`."},
		},
		"backing off": {
			row:     `"status":"backing-off","retry_count":3,"last_attempt_deployment_id":"dp_1a","next_retry_at":"2026-11-20T18:22:39Z","last_failure":"[500 Internal] boom\nat a\nat b\nat c\nat d\n","cancel_requested_at":"2026-11-20T18:21:38Z"`,
			summary: "Its last attempt failed; the next one starts at 2026-11-20T18:22:39.000Z (in 1m).",
			details: []string{
				"Attempts: 3 attempts so far, the latest at http://localhost:9080/ (dp_1a).",
				"Last failure: The last attempt failed: [500 Internal] boom\nat a\nat b\n… and 2 lines more: `platform invocations describe ID`",
				"Cancellation: Its cancellation was requested at 2026-11-20T18:21:38.000Z (1s ago); the handler gets it at its next await point.",
			},
			steps: []string{
				"It is retried automatically. `platform invocations resume ID` retries it immediately.",
				"Attempts that fail before an await point are retried and do not notice the cancellation.",
				"`platform invocations kill ID` ends it now, without the handler.",
			},
		},
		"journal mismatch in several lines": {
			row:     `"status":"backing-off","next_retry_at":"2026-11-20T18:22:39Z","last_failure_error_code":"RT0016","last_failure":"[570] mismatch\na\nb\nDifference:\nname: charge != invoice\n"`,
			summary: "Its last attempt failed; the next one starts at 2026-11-20T18:22:39.000Z (in 1m).",
			details: []string{
				"Attempts: 1 attempt so far.",
				"Last failure: The last attempt failed: [570] mismatch\na\nb\nDifference:\nname: charge != invoice",
			},
			steps: []string{
				mismatchRemedy,
				"`platform explain RT0016` explains this kind of failure.",
				"Register the code that it started on, or code that executes the same steps, and then: `platform invocations resume ID --deployment latest` (or the id of its deployment).",
				"It is retried automatically, but each attempt fails until code with the steps of its journal runs at the address.",
			},
		},
		"paused": {
			row:     `"status":"paused","modified_at":"2026-11-20T18:21:38Z","last_pause_cause":"attempts-used-up","last_pause_attempts":3,"last_failure":"boom","last_failure_related_command_type":"Run","last_failure_related_command_name":"charge"`,
			summary: "It was paused at 2026-11-20T18:21:38.000Z (1s ago): the maximum number of attempts of its retry policy was reached (3 failed).",
			details: []string{"Last failure: The last attempt failed: boom", "Failed command: It failed in Run charge."},
			steps:   []string{"`platform invocations resume ID` continues it.", "`platform invocations cancel ID` ends it, if the handler reaches an await point before it fails again.", "`platform invocations kill ID` ends it now, without the handler."},
		},
		"paused after a failure of a command without a name": {
			row:     `"status":"paused","modified_at":"2026-11-20T18:21:38Z","last_pause_cause":"attempts-used-up","last_pause_attempts":3,"last_failure":"boom","last_failure_related_command_type":"Sleep"`,
			summary: "It was paused at 2026-11-20T18:21:38.000Z (1s ago): the maximum number of attempts of its retry policy was reached (3 failed).",
			details: []string{"Last failure: The last attempt failed: boom", "Failed command: It failed in Sleep."},
			steps:   []string{"`platform invocations resume ID` continues it.", "`platform invocations cancel ID` ends it, if the handler reaches an await point before it fails again.", "`platform invocations kill ID` ends it now, without the handler."},
		},
		"backing off on a deployment that is not the latest": {
			row:     `"status":"backing-off","next_retry_at":"2026-11-20T18:22:39Z","target_service_name":"S","pinned_deployment_id":"dp_1","last_failure":"boom"`,
			summary: "Its last attempt failed; the next one starts at 2026-11-20T18:22:39.000Z (in 1m).",
			details: []string{"Attempts: 1 attempt so far.", "Last failure: The last attempt failed: boom"},
			steps: []string{
				"Attempts use dp_1, the deployment that it started on. If the latest one, dp_2, fixes the failure: `platform invocations resume ID --deployment latest` continues it there.",
				"It is retried automatically. `platform invocations resume ID` retries it immediately.",
			},
		},
		"paused after a journal mismatch": {
			row:     `"status":"paused","last_pause_cause":"attempts-used-up","last_pause_attempts":4,"modified_at":"2026-11-20T18:21:09Z","last_failure":"[570 Journal Mismatch] mismatch","last_failure_error_code":"RT0016","cancel_requested_at":"2026-11-20T18:21:08Z"`,
			summary: "It was paused at 2026-11-20T18:21:09.000Z (30s ago): the maximum number of attempts of its retry policy was reached (4 failed).",
			details: []string{
				"Last failure: The last attempt failed: [570 Journal Mismatch] mismatch",
				"Cancellation: Its cancellation was requested at 2026-11-20T18:21:08.000Z (31s ago); the handler gets it at its next await point.",
			},
			steps: []string{
				mismatch.Remedy,
				"`platform explain RT0016` explains this kind of failure.",
				"Register the code that it started on, or code that executes the same steps, and then: `platform invocations resume ID --deployment latest` (or the id of its deployment).",
				"`platform invocations resume ID` retries it at the address of its deployment, once code with the steps of its journal runs there.",
				"`platform invocations kill ID` ends it now, without the handler. A cancellation cannot end it: the handler fails before it gets it.",
			},
		},
		"paused on the latest deployment": {
			row:     `"status":"paused","target_service_name":"S","pinned_deployment_id":"dp_2","last_pause_cause":"unretryable-failure","modified_at":"2026-11-20T18:21:38Z","last_failure":"boom"`,
			summary: "It was paused at 2026-11-20T18:21:38.000Z (1s ago): its last attempt failed with an error that is not retried.",
			details: []string{"Last failure: The last attempt failed: boom"},
			steps:   []string{"`platform invocations resume ID` continues it.", "`platform invocations cancel ID` ends it, if the handler reaches an await point before it fails again.", "`platform invocations kill ID` ends it now, without the handler."},
		},
		"suspended": {
			row: `"status":"suspended","suspended_waiting_future_json":"{\"FirstCompleted\":[{\"Single\":{\"CompletionId\":1}},{\"Single\":{\"CompletionId\":3}},{\"Single\":{\"SignalIndex\":17}},{\"Single\":{\"SignalIndex\":1}},{\"Single\":{\"SignalName\":\"approve it\"}}]}"`,
			tables: tables{
				"FROM sys_journal": `[{"sleep_wakeup_at":"2026-11-20T18:21:40Z","entry_lite_json":"{\"Command\":{\"Sleep\":{\"completion_id\":1}}}"},{"invoked_id":"inv_1callee","entry_lite_json":"{\"Command\":{\"Call\":{\"invocation_id_completion_id\":2,\"result_completion_id\":3}}}"}]`,
				"'inv_1callee'":    `[{"target":"S/h","status":"paused"}]`,
			},
			summary: "It is suspended, without a connection to the handler, and waits for the end of a sleep at 2026-11-20T18:21:40.000Z (in 1s) and 3 other results.",
			waits: []string{
				"sleep : the end of a sleep at 2026-11-20T18:21:40.000Z (in 1s)",
				"invocation inv_1callee: the result of inv_1callee (S/h, paused)",
				"awakeable " + awakeable(17) + ": the awakeable " + awakeable(17),
				"signal approve it: the signal approve it",
			},
			steps: []string{
				"Nothing: it continues automatically.", "`platform explain inv_1callee` shows what it waits for.",
				"Resolve it: `platform awakeables resolve " + awakeable(17) + " <value>`", "Send it: `platform signals send ID 'approve it' <value>`",
			},
		},
		"running, with a step of the journal open": {
			row: `"status":"running","running_at":"2026-11-20T18:13:50Z","last_start_at":"2026-11-20T18:21:38Z"`,
			tables: tables{
				"'Notification: %'": `[{"entry_lite_json":"{\"Notification\":{\"Completion\":{\"Run\":{\"completion_id\":1}}}}"}]`,
				"'Command: %'": `[{"name":"charge","entry_lite_json":"{\"Command\":{\"Run\":{\"completion_id\":1}}}"},` +
					`{"promise_name":"approved","entry_lite_json":"{\"Command\":{\"GetPromise\":{\"completion_id\":2}}}"},` +
					`{"name":"","entry_lite_json":"{\"Command\":{\"OneWayCall\":{\"invocation_id_completion_id\":3}}}"}]`,
			},
			summary: "An attempt is in progress, since 2026-11-20T18:21:38.000Z (1s ago), on its deployment.",
			details: []string{
				"First start: It first started at 2026-11-20T18:13:50.000Z (7m 49s ago).",
				"Journal: The handler does not report what it waits for. 1 command is not completed in its journal.",
			},
			waits: []string{"promise approved: the promise approved of the workflow"},
			steps: []string{"Another handler of the workflow completes the promise.", "`platform invocations describe ID` shows its journal."},
		},
		"running, waiting for a promise, with a protocol that does not report it": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:38Z","target_service_name":"S","pinned_service_protocol_version":6`,
			tables: tables{
				"'Command: %'": `[{"promise_name":"approved","entry_lite_json":"{\"Command\":{\"GetPromise\":{\"completion_id\":2}}}"}]`,
			},
			summary: "An attempt is in progress, since 2026-11-20T18:21:38.000Z (1s ago), on its deployment.",
			details: []string{"Journal: The handler does not report what it waits for. 1 command is not completed in its journal."},
			waits:   []string{"promise approved: the promise approved of the workflow"},
			steps:   []string{"Another handler of the workflow completes the promise.", "`platform invocations describe ID` shows its journal."},
		},
		"suspended again after a cancellation": {
			row:     `"status":"suspended","modified_at":"2026-11-20T18:21:38Z","cancel_requested_at":"2026-11-20T18:21:37Z"`,
			summary: "It is suspended, without a connection to the handler.",
			details: []string{"Cancellation: Its cancellation was requested at 2026-11-20T18:21:37.000Z (2s ago). It has been suspended since then: what it waits for now is not ended by that, for example because the handler cleans up."},
			steps:   []string{"`platform invocations describe ID` shows its journal.", "`platform invocations kill ID` ends it now, without the handler."},
		},
		"running, waiting for a promise, cancelled": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:38Z","target_service_name":"S","pinned_service_protocol_version":6,"cancel_requested_at":"2026-11-20T18:21:38Z"`,
			tables: tables{
				"'Command: %'": `[{"promise_name":"approved","entry_lite_json":"{\"Command\":{\"GetPromise\":{\"completion_id\":2}}}"}]`,
			},
			summary: "An attempt is in progress, since 2026-11-20T18:21:38.000Z (1s ago), on its deployment.",
			details: []string{
				"Cancellation: Its cancellation was requested at 2026-11-20T18:21:38.000Z (1s ago); the handler gets it at its next await point.",
				"Journal: The handler does not report what it waits for. 1 command is not completed in its journal.",
			},
			waits: []string{"promise approved: the promise approved of the workflow"},
			steps: []string{
				"Another handler of the workflow completes the promise.", "`platform invocations describe ID` shows its journal.",
				"`platform invocations kill ID` ends it now, without the handler.",
			},
		},
		"completed with a failure, of a workflow": {
			row:     `"status":"completed","completed_at":"2026-11-20T18:21:38Z","completion_result":"failure","completion_failure":"[500 Internal] boom","target_service_ty":"workflow"`,
			summary: "It ended at 2026-11-20T18:21:38.000Z (1s ago) with the failure [500 Internal] boom",
			steps: []string{
				"`platform invocations purge ID` deletes it. After the run of a workflow is purged, with its state and promises, the same key can run again.",
			},
		},
		"running, waiting with a timeout, with a protocol that does not report it": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:38Z","target_service_name":"S","pinned_service_protocol_version":6`,
			tables: tables{
				"'Command: %'": `[{"sleep_wakeup_at":"2026-11-20T19:00:00Z","entry_lite_json":"{\"Command\":{\"Sleep\":{\"completion_id\":2}}}"}]`,
			},
			summary: "An attempt is in progress, since 2026-11-20T18:21:38.000Z (1s ago), on its deployment.",
			details: []string{
				"Journal: The handler does not report what it waits for. 1 command is not completed in its journal.",
				"Awakeables: If it waits for an awakeable, the first one that is not completed is " + awakeable(17) + ".",
			},
			waits: []string{"sleep : the end of a sleep at 2026-11-20T19:00:00.000Z (in 38m 21s)"},
			steps: []string{
				"Nothing: it continues automatically.", "If the handler waits for it: `platform awakeables resolve " + awakeable(17) + " <value>`",
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"running, without an open entry": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:13:50Z","target_service_name":"S","pinned_service_protocol_version":6`,
			tables:  tables{"'Notification: %'": `[{"entry_lite_json":"{\"Notification\":{\"Signal\":{\"id\":{\"Index\":17}}}}"}]`},
			summary: "An attempt is in progress, since 2026-11-20T18:13:50.000Z (7m 49s ago), on its deployment.",
			details: []string{
				"Awakeables: With service protocol 6, a running handler does not report what it awaits. If it waits for an awakeable, the first one that is not completed is " + awakeable(18) + ".",
				"Handler: No entry of its journal is open: the handler executes code, or its process no longer responds although its connection is open.",
			},
			steps: []string{
				"If the handler waits for it: `platform awakeables resolve " + awakeable(18) + " <value>`",
				"See the log of the service: what its process does is known only there.",
				"A handler that sends nothing for the inactivity timeout is asked to suspend, and its attempt is aborted after the abort timeout: `platform services config view S` shows them.",
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"running for a minute, with a protocol that reports awakeables": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:20:38Z","target_service_name":"S","pinned_service_protocol_version":7`,
			summary: "An attempt is in progress, since 2026-11-20T18:20:38.000Z (1m 1s ago), on its deployment.",
			details: []string{"Handler: No entry of its journal is open: the handler executes code, or its process no longer responds although its connection is open."},
			steps: []string{
				"See the log of the service: what its process does is known only there.",
				"A handler that sends nothing for the inactivity timeout is asked to suspend, and its attempt is aborted after the abort timeout: `platform services config view S` shows them.",
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"running, silent for some seconds": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:00Z","retry_count":2,"last_failure":"[500] boom","last_attempt_deployment_id":"dp_1a",` +
				`"target_service_name":"S","pinned_service_protocol_version":7,"journal_size":3,` +
				`"last_active_at":"2026-11-20T18:21:10Z","suspend_at":"2026-11-20T18:22:10Z","abort_at":"2026-11-20T18:32:10Z"`,
			tables:  tables{`AND "index" = 2`: `[{"index":2,"entry_type":"Notification: Run","appended_at":"2026-11-20T18:21:09Z"}]`},
			summary: "Attempt 2 is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1a.",
			details: []string{
				"Attempts: The attempt before failed: [500] boom",
				"Endpoint: Something was last sent to or received from it at 2026-11-20T18:21:10.000Z (29s ago). If it sends nothing, it is asked to suspend at 2026-11-20T18:22:10.000Z (in 31s) (inactivity timeout), and the attempt is aborted and retried at 2026-11-20T18:32:10.000Z (in 10m 31s) (abort timeout).",
				"Progress: The last entry of its journal is number 2, Run, stored at 2026-11-20T18:21:09.000Z (30s ago).",
				"Awakeables: The handler has not reported what it awaits, if it awaits anything. If it waits for an awakeable, the first one that is not completed is " + awakeable(17) + ".",
			},
			steps: []string{
				"If the handler waits for it: `platform awakeables resolve " + awakeable(17) + " <value>`",
				"See the log of the service at http://localhost:9080/ (dp_1a): what its process does is known only there.",
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"running, silent for a moment": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:00Z","last_attempt_deployment_id":"dp_1a",` +
				`"target_service_name":"S","pinned_service_protocol_version":7,"last_active_at":"2026-11-20T18:21:35Z","suspend_at":"2026-11-20T18:22:09Z","abort_at":"2026-11-20T18:32:09Z"`,
			summary: "An attempt is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1a.",
			details: []string{
				"Endpoint: Something was last sent to or received from it at 2026-11-20T18:21:35.000Z (4s ago). If it sends nothing, it is asked to suspend at 2026-11-20T18:22:09.000Z (in 30s) (inactivity timeout), and the attempt is aborted and retried at 2026-11-20T18:32:09.000Z (in 10m 30s) (abort timeout).",
			},
			steps: []string{
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"ready, throttled": {
			row:     `"status":"ready","target_service_name":"S","throttled_since":"2026-11-20T18:21:10Z"`,
			summary: "It is ready, but the node that leads its partition has started as many attempts as worker.invoker.invocation-throttling permits. Attempts have been waiting since 2026-11-20T18:21:10.000Z (29s ago).",
			steps:   []string{"Nothing, if it starts within seconds: services take turns. Otherwise raise the rate in the configuration of the nodes."},
		},
		"backing off, throttled": {
			row:     `"status":"backing-off","retry_count":3,"target_service_name":"S","last_failure":"boom","throttled_since":"2026-11-20T18:21:10Z"`,
			summary: "Its last attempt failed. The next one is due, but the node that leads its partition has started as many attempts as worker.invoker.invocation-throttling permits. Attempts have been waiting since 2026-11-20T18:21:10.000Z (29s ago).",
			details: []string{"Attempts: 3 attempts so far.", "Last failure: The last attempt failed: boom"},
			steps:   []string{"Nothing, if it starts within seconds: services take turns. Otherwise raise the rate in the configuration of the nodes."},
		},
		"backing off, the next attempt waits for a slot under a new leader": {
			row:     `"status":"backing-off","retry_count":3,"target_service_name":"S"`,
			summary: "Its last attempt failed. The next one is due and waits for a free slot of the node that leads its partition.",
			details: []string{"Attempts: 3 attempts so far."},
			steps:   []string{"Nothing, if it starts within seconds. Otherwise the node has reached its limits: see worker.invoker.concurrent-invocations-limit, memory-limit and invocation-throttling of the server."},
		},
		"running again under a new leader": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:21:00Z","retry_count":4,"last_attempt_deployment_id":"dp_1b"`,
			summary: "Attempt 4 is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1b.",
			steps:   []string{"`platform invocations describe ID` shows its journal."},
		},
		"running, throttled": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:21:00Z","last_attempt_deployment_id":"dp_1b","throttled_since":"2026-11-20T18:21:10Z"`,
			summary: "An attempt is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1b.",
			details: []string{"Throttling: The handler has sent a command, which waits since 2026-11-20T18:21:10.000Z (29s ago) because the handlers of the node have sent as many as worker.invoker.action-throttling permits. Its timeouts do not pass meanwhile."},
			steps:   []string{"`platform invocations describe ID` shows its journal."},
		},
		"running, silent, on a deployment whose address is not known": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:21:00Z","last_attempt_deployment_id":"dp_1b","no_response_since":"2026-11-20T18:21:01Z","abort_at":"2026-11-20T18:32:09Z"`,
			summary: "An attempt is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1b.",
			details: []string{
				"Endpoint: The endpoint is connected but has sent nothing since 2026-11-20T18:21:01.000Z (38s ago), not even response headers. The attempt continues until the abort timeout at 2026-11-20T18:32:09.000Z (in 10m 30s).",
			},
			steps: []string{
				"See the log of the service on dp_1b: what its process does is known only there.",
				"If its handler is expected to work for a long time without sending anything, do nothing. If it hangs, restart its process: the attempt is then retried.",
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"running, silent in a step": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:00Z","last_attempt_deployment_id":"dp_1a","pinned_service_protocol_version":7,"last_active_at":"2026-11-20T18:21:09Z"`,
			tables: tables{
				"'Command: %'": `[{"name":"charge","entry_lite_json":"{\"Command\":{\"Run\":{\"completion_id\":1}}}"}]`,
			},
			summary: "An attempt is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1a.",
			details: []string{
				"Endpoint: Something was last sent to or received from it at 2026-11-20T18:21:09.000Z (30s ago).",
				"Journal: The handler does not report what it waits for. 1 command is not completed in its journal.",
			},
			waits: []string{"run charge: the result of the step \"charge\", which its own process executes"},
			steps: []string{
				"See the log of the service at http://localhost:9080/ (dp_1a): what its process does is known only there.",
				"`platform invocations describe ID` shows its journal.",
			},
		},
		"running, silent while it sleeps": {
			row: `"status":"running","last_start_at":"2026-11-20T18:21:00Z","last_attempt_deployment_id":"dp_1a","pinned_service_protocol_version":7,"last_active_at":"2026-11-20T18:21:09Z"`,
			tables: tables{
				"'Command: %'": `[{"sleep_wakeup_at":"2026-11-20T19:00:00Z","entry_lite_json":"{\"Command\":{\"Sleep\":{\"completion_id\":2}}}"}]`,
			},
			summary: "An attempt is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on dp_1a.",
			details: []string{
				"Endpoint: Something was last sent to or received from it at 2026-11-20T18:21:09.000Z (30s ago).",
				"Journal: The handler does not report what it waits for. 1 command is not completed in its journal.",
				"Awakeables: If it waits for an awakeable, the first one that is not completed is " + awakeable(17) + ".",
			},
			waits: []string{"sleep : the end of a sleep at 2026-11-20T19:00:00.000Z (in 38m 21s)"},
			steps: []string{"Nothing: it continues automatically.", "If the handler waits for it: `platform awakeables resolve " + awakeable(17) + " <value>`", "`platform invocations describe ID` shows its journal."},
		},
		"running, asked to suspend, before its first step": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:21:00Z","retry_count":1,"journal_size":1,"last_active_at":"2026-11-20T18:21:10Z","abort_at":"2026-11-20T18:32:10Z"`,
			tables:  tables{`AND "index" = 0`: `[{"index":0,"entry_type":"Command: Input"}]`},
			summary: "Attempt 1 is in progress, since 2026-11-20T18:21:00.000Z (39s ago), on its deployment.",
			details: []string{
				"Endpoint: Something was last sent to or received from it at 2026-11-20T18:21:10.000Z (29s ago). If it sends nothing, the attempt is aborted and retried at 2026-11-20T18:32:10.000Z (in 10m 31s) (abort timeout).",
				"Progress: No step of its handler is stored yet, only the input.",
				"Awakeables: The handler has not reported what it awaits, if it awaits anything. If it waits for an awakeable, the first one that is not completed is " + awakeable(17) + ".",
			},
			steps: []string{"If the handler waits for it: `platform awakeables resolve " + awakeable(17) + " <value>`", "See the log of the service: what its process does is known only there.", "`platform invocations describe ID` shows its journal."},
		},
		"running for less than a minute": {
			row:     `"status":"running","last_start_at":"2026-11-20T18:20:40Z","target_service_name":"S","pinned_service_protocol_version":7`,
			summary: "An attempt is in progress, since 2026-11-20T18:20:40.000Z (59s ago), on its deployment.",
			steps:   []string{"`platform invocations describe ID` shows its journal."},
		},
		"completed": {
			row:     `"status":"completed","completed_at":"2026-11-20T18:21:38Z","completion_result":"success"`,
			summary: "It ended at 2026-11-20T18:21:38.000Z (1s ago) with success.",
			steps:   []string{"`platform attach ID` prints the result."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.tables == nil {
				test.tables = tables{}
			}
			test.tables[fmt.Sprintf("FROM sys_invocation WHERE id = '%s'", id)] = `[{"target":"S/h",` + test.row + `}]`
			e, err := Invocation(t.Context(), test.tables, id.String(), now)
			require.NoError(t, err)
			details, waits, steps := texts(e)
			withID := func(list []string) []string {
				var out []string
				for _, text := range list {
					out = append(out, strings.ReplaceAll(text, " ID", " "+id.String()))
				}
				return out
			}
			require.Equal(t, test.summary, e.Summary)
			require.Equal(t, withID(test.details), details)
			require.Equal(t, test.waits, waits)
			require.Equal(t, withID(test.steps), steps)
		})
	}
}

// A handler that awaits many calls: few of them are suggested to be explained.
func TestFewOfManyCallsAreSuggestedToBeExplained(t *testing.T) {
	id := ids.NewInvocation(7, [16]byte{15: 1})
	var leaves, commands []string
	for i := range 50 {
		leaves = append(leaves, fmt.Sprintf(`{\"Single\":{\"CompletionId\":%d}}`, i+1))
		commands = append(commands, fmt.Sprintf(`{"invoked_id":"inv_%d","entry_lite_json":"{\"Command\":{\"Call\":{\"result_completion_id\":%d}}}"}`, i, i+1))
	}
	e, err := Invocation(t.Context(), tables{
		"FROM sys_invocation WHERE id = '" + id.String(): `[{"status":"suspended","pinned_service_protocol_version":7,"suspended_waiting_future_json":"{\"AllCompleted\":[` + strings.Join(leaves, ",") + `]}"}]`,
		"'Command: %'": "[" + strings.Join(commands, ",") + "]",
	}, id.String(), time.Now())
	require.NoError(t, err)
	require.Len(t, e.WaitingFor, 50)
	require.Equal(t, "It is suspended, without a connection to the handler, and waits for 50 results, all of them.", e.Summary)
	require.Len(t, e.NextSteps, maxCalleeSteps)
}

// Clients that are limited to services must not learn about invocations of others.
func TestInvocationsOutsideTheLimitsAreNotDescribed(t *testing.T) {
	all := tables{
		"* FROM sys_invocation WHERE id = 'inv_1a'": `[{"id":"inv_1a","status":"suspended","suspended_waiting_future_json":"{\"Single\":{\"CompletionId\":3}}"}]`,
		"sys_journal":              `[{"invoked_id":"inv_1callee","entry_lite_json":"{\"Command\":{\"Call\":{\"result_completion_id\":3}}}"}]`,
		"WHERE id = 'inv_1callee'": `[{"target":"Hidden/key/h","target_service_name":"Hidden","status":"paused"}]`,
	}
	e, err := Invocation(t.Context(), all, "inv_1a", now)
	require.NoError(t, err)
	_, waits, _ := texts(e)
	require.Equal(t, []string{"invocation inv_1callee: the result of inv_1callee"}, waits)
}

func TestStepsHaveTheirCommand(t *testing.T) {
	e := new(explainer)
	e.next("Send it: `platform signals send x y <value>`")
	e.next("Nothing: it continues automatically.")
	e.next("Nothing: it continues automatically.")
	require.Equal(t, []Step{
		{Text: "Send it: `platform signals send x y <value>`", Command: "platform signals send x y <value>"},
		{Text: "Nothing: it continues automatically."},
	}, e.NextSteps)
}

type unreadable struct{ tables }

func (unreadable) Query(context.Context, string) ([]Row, error) { return nil, errors.ErrUnsupported }

func TestErrors(t *testing.T) {
	_, err := Invocation(t.Context(), tables{}, "inv_1", now)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = Invocation(t.Context(), unreadable{}, "inv_1", now)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = Invocation(t.Context(), tables{"FROM sys_invocation": `[{"status":"suspended","suspended_waiting_future_json":"{"}]`}, "inv_1", now)
	require.ErrorIs(t, err, errFuture)
}

func TestChainOfWaits(t *testing.T) {
	call := func(id string) string {
		return `[{"invoked_id":"` + id + `","entry_lite_json":"{\"Command\":{\"Call\":{\"invocation_id_completion_id\":2,\"result_completion_id\":3}}}"}]`
	}
	waiting := func(id string) string {
		return `[{"id":"` + id + `","target":"S/` + id + `","status":"suspended","suspended_waiting_future_json":"{\"Single\":{\"CompletionId\":3}}"}]`
	}
	all := tables{
		"* FROM sys_invocation WHERE id = 'inv_1a'": waiting("inv_1a"), "sys_journal WHERE id = 'inv_1a'": call("inv_1b"),
		"* FROM sys_invocation WHERE id = 'inv_1b'": waiting("inv_1b"), "sys_journal WHERE id = 'inv_1b'": call("inv_1c"),
		"* FROM sys_invocation WHERE id = 'inv_1c'": `[{"id":"inv_1c","target":"S/c","status":"paused","last_pause_cause":"operator"}]`,
	}
	follow := func() *Explanation {
		e, err := Invocation(t.Context(), all, "inv_1a", now)
		require.NoError(t, err)
		require.NoError(t, Follow(t.Context(), all, e, now))
		return e
	}
	b := follow().WaitingFor[0]
	require.Equal(t, "inv_1b S/inv_1b suspended", b.ID+" "+b.Target+" "+b.Status)
	c := b.WaitingFor[0]
	require.Equal(t, "inv_1c S/c paused It was paused by an operator.", c.ID+" "+c.Target+" "+c.Status+" "+c.Summary)
	require.Empty(t, c.WaitingFor)

	all["* FROM sys_invocation WHERE id = 'inv_1c'"], all["sys_journal WHERE id = 'inv_1c'"] = waiting("inv_1c"), call("inv_1a")
	last := follow().WaitingFor[0].WaitingFor[0].WaitingFor[0]
	require.Equal(t, "inv_1a", last.ID)
	require.True(t, last.Cycle)
	require.Empty(t, last.WaitingFor)

	for n := range 2 * maxChain { // a long chain ends
		all[fmt.Sprintf("* FROM sys_invocation WHERE id = 'inv_1x%d'", n)] = waiting(fmt.Sprintf("inv_1x%d", n))
		all[fmt.Sprintf("sys_journal WHERE id = 'inv_1x%d'", n)] = call(fmt.Sprintf("inv_1x%d", n+1))
	}
	all["sys_journal WHERE id = 'inv_1c'"] = call("inv_1x0")
	explained := 0
	for w := follow().WaitingFor; len(w) > 0; w = w[0].WaitingFor {
		if w[0].Status != "" {
			explained++
		}
	}
	require.Equal(t, maxChain, explained)
}

// TestCombinationsAreNamed distinguishes the first of several results from all of them, which matters for what an
// operator does about a timeout.
func TestCombinationsAreNamed(t *testing.T) {
	const sleep, awakeable, cancel = `{"Single":{"SignalName":"timer"}}`, `{"Single":{"SignalName":"approval"}}`, `{"Single":{"SignalIndex":1}}`
	for tree, want := range map[string]string{
		`{"FirstCompleted":[` + sleep + `,` + awakeable + `,` + cancel + `]}`:                                 "waits for the first of 2 results.",
		`{"FirstCompleted":[{"FirstCompleted":[` + sleep + `,` + awakeable + `]},` + cancel + `]}`:            "waits for the first of 2 results.",
		`{"FirstCompleted":[{"FirstSucceededOrAllFailed":[` + sleep + `,` + awakeable + `]},` + cancel + `]}`: "waits for the first of 2 results.",
		`{"FirstCompleted":[{"AllSucceededOrFirstFailed":[` + sleep + `,` + awakeable + `]},` + cancel + `]}`: "waits for 2 results, all of them.",
		`{"FirstCompleted":[{"AllCompleted":[` + sleep + `]},` + awakeable + `,` + cancel + `]}`:              "waits for the signal timer and 1 other result.",
		`{"FirstCompleted":[{"Unknown":[` + sleep + `,` + awakeable + `]},` + cancel + `]}`:                   "waits for the signal timer and 1 other result.",
		`{"FirstCompleted":[` + sleep + `,` + cancel + `]}`:                                                   "waits for the signal timer.",
	} {
		for version, want := range map[int]string{7: want, 6: "waits for the signal timer"} {
			row := fmt.Sprintf(`{"id":"ID","status":"suspended","pinned_service_protocol_version":%d,"suspended_waiting_future_json":%s}`, version, strconv.Quote(tree))
			e, err := Invocation(t.Context(), tables{"FROM sys_invocation": "[" + row + "]"}, "ID", now)
			require.NoError(t, err)
			require.Contains(t, e.Summary, want, tree)
			require.Equal(t, strings.Contains(want, "the first of"), e.WaitsForFirst, tree)
		}
	}
}
