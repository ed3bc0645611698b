package query

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/machine"
)

func noticesOf(t *testing.T, e *Engine, text string) []string {
	t.Helper()
	var buf bytes.Buffer
	_, err := e.WriteJSON(t.Context(), text, Options{}, &buf)
	require.NoError(t, err, text)
	var answer struct {
		Notices []Notice
		Rows    []map[string]any
	}
	require.NoError(t, json.Unmarshal(buf.Bytes(), &answer))
	var messages []string
	for _, n := range answer.Notices {
		require.Positive(t, n.Line)
		require.Positive(t, n.Column)
		messages = append(messages, n.Message)
	}
	return messages
}

func TestNoticesOfValuesThatAColumnNeverHas(t *testing.T) {
	e := newTestEngine(t, Config{})
	const statuses = "It is scheduled, pending, ready, running, backing-off, suspended, paused or completed"
	const misspelt = "status is never 'runing'; did you mean 'running'? " + statuses
	for text, want := range map[string]string{
		"select id from sys_invocation where status = 'runing'":                           "line 1, column 46: " + misspelt,
		"select id from platform.public.sys_invocation i where i.status != 'runing'":      "line 1, column 67: " + misspelt,
		"select id from sys_invocation\nwhere not 'runing' = status and 1 = 1":            "line 2, column 11: " + misspelt,
		"select id from sys_invocation where \"status\" is 'runing' limit 3":              "line 1, column 49: " + misspelt,
		"select id from sys_invocation where status is not 'runing'":                      "line 1, column 51: " + misspelt,
		"select count(*) filter (where status = 'runing') as n from sys_invocation":       "line 1, column 40: " + misspelt,
		"select status = 'runing' as runs from sys_invocation":                            "line 1, column 17: " + misspelt,
		"select id from sys_invocation where status in ('running', 'runing')":             "line 1, column 59: " + misspelt,
		"select id from sys_invocation where status not in ('runing') and id > ''":        "line 1, column 52: " + misspelt,
		"select id from sys_invocation where status = 'running' or status = 'runing'":     "line 1, column 68: " + misspelt,
		"select sum(case when status = 'runing' then 1 else 0 end) from sys_invocation":   "line 1, column 31: " + misspelt,
		"select id from sys_invocation where status = 'zzzzzzzzzzz'":                      "line 1, column 46: status is never 'zzzzzzzzzzz'; it" + statuses[2:],
		"select id from sys_invocation where status = ''":                                 "line 1, column 46: status is never ''; it" + statuses[2:],
		"select id from sys_invocation where completion_result = 'failed'":                "line 1, column 57: completion_result is never 'failed'; it is success or failure",
		"select id from sys_invocation where pause_requested = 'true'":                    "line 1, column 55: pause_requested is never the text 'true'; write true or false without quotes",
		"select id from sys_invocation where created_at > 'yesterday'":                    "line 1, column 50: 'yesterday' is not a time; write it like '2026-11-20T18:21:39Z', or now() - INTERVAL '1 hour'",
		"select id from sys_invocation where created_at > '1 hour ago'":                   "line 1, column 50: '1 hour ago' is not a time; write it like '2026-11-20T18:21:39Z', or now() - INTERVAL '1 hour'",
		"select name from nodes where state = 'up'":                                       "line 1, column 38: state is never 'up'; it is alive, dead, left or unknown",
		"select index from sys_journal where entry_type = 'Call'":                         "",
		"select id from sys_invocation where status = '" + strings.Repeat("ü", 500) + "'": "line 1, column 46: status is never '" + strings.Repeat("ü", maxQuoted/2) + "…'; it" + statuses[2:],
	} {
		got := noticesOf(t, e, text)
		require.Len(t, got, 1, text)
		if want != "" {
			require.Equal(t, want, got[0], text)
		}
	}
	require.Contains(t, noticesOf(t, e, "select index from sys_journal where entry_type = 'Call'")[0], "did you mean 'Command: Call'? ")
	require.Len(t, noticesOf(t, e, "select id from sys_invocation where status in ('a'"+strings.Repeat(",'b'", 100)+")"), maxNotices)
}

// TestNoNoticesOfWhatMayBeCorrect has queries that return rows for some data.
func TestNoNoticesOfWhatMayBeCorrect(t *testing.T) {
	e := newTestEngine(t, Config{})
	for _, text := range []string{
		"select id from sys_invocation where status = 'running'",
		"select id from sys_invocation where status = 'run' || 'ning'",
		"select id from sys_invocation where 'x' || status = 'xrunning'",
		"select id from sys_invocation where status || 'x' = 'runningx'",
		"select id from sys_invocation where status collate nocase = 'RUNNING'",
		"select id from sys_invocation where status = 'RUNNING' collate nocase",
		"select id from sys_invocation where upper(status) = 'RUNNING'",
		"select id from sys_invocation where status like 'run%' or status > 'b'",
		"select id from sys_invocation where status in ('run' || 'ning')",
		"select id from sys_invocation where status in (select 'x')",
		"select * from (select upper(status) as status from sys_invocation) where status = 'RUNNING'",
		"select * from (select upper(status) status from sys_invocation) where status = 'RUNNING'",
		"select * from (select 'x' \"status\" from sys_invocation) where status = 'x'",
		"with x(status) as (select upper(status) from sys_invocation) select * from x where status = 'RUNNING'",
		"with x as materialized (select upper(status) as status from sys_invocation) select * from x where status = 'RUNNING'",
		"select i.id from sys_invocation i join sys_vqueues q on i.id = q.entry_id where q.status = 'succeeded'",
		"select 'runing' = 'status' from sys_invocation",
		"select target from sys_invocation where target = 'Greeter/greet'",
		"select name from sys_journal where name = 'runing'",
		"select id from sys_invocation where created_at > '2026-11' and created_at < '2027'",
		"select id from sys_invocation where created_at > '2026-11-20 10:00'",
		"select id from sys_invocation where pause_requested = '1' or pause_requested = true",
		"select id from sys_invocation where status is null or status is distinct from 'x'",
		"select status from sys_invocation group by status order by status",
		"select 'status'", "values ('status')", "show tables", "describe sys_invocation",
	} {
		require.Empty(t, noticesOf(t, e, text), text)
	}
}

func TestKnownValuesAreComplete(t *testing.T) {
	c := newCatalog()
	for name, columns := range knownValues {
		table := c.find(schemaPublic, name)
		require.NotNil(t, table, name)
		for column, values := range columns {
			at := slices.IndexFunc(table.Columns, func(c Column) bool { return c.Name == column })
			require.NotEqual(t, -1, at, "%s.%s", name, column)
			require.Equal(t, Text, table.Columns[at].Type, "%s.%s", name, column)
			require.Equal(t, values, table.Columns[at].Values)
		}
	}
	for status := machine.Scheduled; status <= machine.Completed; status++ {
		inv := &machine.Invocation{Status: status}
		require.Contains(t, knownValues["sys_invocation_status"]["status"], storedStatus(status))
		for _, attempts := range []*attempts.Status{nil, {}, {InFlight: true}, {RetryCount: 1}} {
			require.Contains(t, knownValues["sys_invocation"]["status"], StatusOf(partition.Record{Invocation: inv, Attempts: attempts}))
		}
	}
	for _, kind := range eventKinds {
		require.Contains(t, knownValues["sys_journal_events"]["event_type"], kind)
	}
	require.Contains(t, entryTypes(), "Notification: CallInvocationId")
	require.NotContains(t, strings.Join(entryTypes(), ","), "0x")
}

// TestNoticesPrecedeTheRows of a response with columns.
func TestNoticesPrecedeTheRows(t *testing.T) {
	var buf bytes.Buffer
	e := newTestEngine(t, Config{})
	_, err := e.WriteJSON(t.Context(), "select name from nodes where state = 'deed'", Options{Columns: true}, &buf)
	require.NoError(t, err)
	require.JSONEq(t, `{"columns":[{"name":"name","type":"text"}],
		"notices":[{"message":"line 1, column 38: state is never 'deed'; did you mean 'dead'? It is alive, dead, left or unknown","line":1,"column":38}],"rows":[]}`, buf.String())
	_, err = e.WriteArrow(t.Context(), "select name from nodes where state = 'deed'", Options{}, io.Discard)
	require.NoError(t, err)
}

func TestStatsAreReturnedOnRequest(t *testing.T) {
	var buf bytes.Buffer
	e := newTestEngine(t, Config{Partitions: &memory{count: 3}})
	_, err := e.WriteJSON(t.Context(), "select id from sys_invocation", Options{Stats: true}, &buf)
	require.NoError(t, err)
	require.JSONEq(t, `{"rows":[],"stats":{"scans":1,"partitions":3,"pages":3,"rows_read":0}}`, buf.String())
}
