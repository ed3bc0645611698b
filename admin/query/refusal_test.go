package query

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/partition"
)

func rejectionOf(t *testing.T, e *Engine, query string) *Error {
	t.Helper()
	_, err := e.WriteJSON(t.Context(), query, Options{}, io.Discard)
	rejection, ok := errors.AsType[*Error](err)
	require.True(t, ok, "%s: %v", query, err)
	return rejection
}

func TestRejections(t *testing.T) {
	e := newTestEngine(t, Config{})
	for query, want := range map[string]string{
		"":                                          "the query is empty; try SELECT * FROM sys_invocation LIMIT 10",
		"-- nothing":                                "the query is empty; try SELECT * FROM sys_invocation LIMIT 10",
		"drop table state":                          "line 1, column 1: " + notReading,
		"insert into state values (1)":              "line 1, column 1: " + notReading,
		"pragma table_info(state)":                  "line 1, column 1: " + notReading,
		"attach ':memory:' as x":                    "line 1, column 1: " + notReading,
		"with x as (select 1) delete from state":    notReading,
		"select 1; select 2":                        "line 1, column 11: one query at a time",
		"select ?":                                  "line 1, column 8: parameters are not supported, write the value into the query",
		"select 'a":                                 "line 1, column 8: the text is not closed: ' is missing",
		"select 1 /* x":                             "line 1, column 10: the comment is not closed: */ is missing",
		"select * from sys_invocaton":               "line 1, column 15: there is no table sys_invocaton; did you mean sys_invocation?",
		"select * from\n  nowhere_at_all":           "line 2, column 3: there is no table nowhere_at_all; SHOW TABLES lists them",
		"select zzzzzz from sys_invocation":         "line 1, column 8: there is no column zzzzzz; DESCRIBE sys_invocation lists them",
		"describe sys_invocaton":                    "line 1, column 10: there is no table sys_invocaton; did you mean sys_invocation?",
		"show columns from nowhere_at_all":          "line 1, column 19: there is no table nowhere_at_all; SHOW TABLES lists them",
		"describe":                                  "DESCRIBE needs the name of a table; SHOW TABLES lists them",
		"show table":                                "line 1, column 1: SHOW TABLES and SHOW COLUMNS FROM <table> are possible",
		"select * from invocations":                 "line 1, column 15: there is no table invocations; did you mean sys_invocation?",
		"select target_service from sys_invocation": "line 1, column 8: there is no column target_service; did you mean target_service_key, target_service_name or target_service_ty?",
		"select id from sys_invocation where status = running":          "line 1, column 46: there is no column running; texts are written in single quotes: 'running'",
		"select id from sys_invocation where status <> \"it's\"":        "line 1, column 47: there is no column it's; texts are written in single quotes: 'it''s'",
		"select id from sys_invocation where status in (paused, ready)": "line 1, column 48: there is no column paused; texts are written in single quotes: 'paused'",
		"select zzzzzz":                         "line 1, column 8: there is no column zzzzzz; DESCRIBE <table> lists them",
		"select idd from sys_invocation":        "line 1, column 8: there is no column idd; did you mean id?",
		"select i.staus\nfrom sys_invocation i": "line 1, column 8: there is no column i.staus; did you mean status?",
		"select lengthh('x')":                   "line 1, column 8: there is no function lengthh; did you mean length?",
		"select load_extension('x')":            "line 1, column 8: the function load_extension is not available here",
		"select randomblob(10)":                 "line 1, column 8: the function randomblob is not available here",
		"select * from sqlite_master":           "access to main.sqlite_master.type is not possible; SHOW TABLES lists the tables",
		"select * from pragma_table_list":       "",
		"select from state":                     "line 1, column 8: syntax error near \"from\"",
		"select id from state where":            "line 1, column 27: unexpected end of the query",
		"select " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300): "line 1, column 208: parentheses are nested more than 200 deep",
		"select 1" + strings.Repeat(",1", maxTokens/2):                        "the query has more than 50000 names, values and operators",
		"select '" + strings.Repeat("x", maxQuery) + "'":                      "the query is longer than 1 MiB",
		"select 1)":                            "line 1, column 9: syntax error near \")\"",
		"select (1":                            "line 1, column 10: unexpected end of the query",
		"select now() - interval '3 moons'":    "line 1, column 16: invalid interval \"3 moons\"; write it like '1 day 2 hours' or '90 seconds'",
		"select \"nope\"":                      "",
		"select to_timestamp('soon')":          "",
		"select json_extract('{', '$')":        "",
		"select abs(-9223372036854775807 - 1)": "",
		"select \x00":                          "",
	} {
		rejection := rejectionOf(t, e, query)
		if want != "" {
			require.Equal(t, want, rejection.Error(), query)
		}
		require.NotContains(t, rejection.Error(), "vtab")
	}
	require.Equal(t, "1", toText(ask(t, e, "select 1 as n")[0]["n"]), "the engine goes on after refusals")
}

// TestSuggestedFunctionsExist calls the functions that queries may use without arguments, which is an
// error for most of them, but none is unknown.
func TestSuggestedFunctionsExist(t *testing.T) {
	e := newTestEngine(t, Config{})
	for _, name := range functionNames() {
		if _, err := e.WriteJSON(t.Context(), "select "+name+"()", Options{}, io.Discard); err != nil {
			require.NotContains(t, err.Error(), "there is no function", name)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n) "
	t.Run("rows", func(t *testing.T) {
		e := newTestEngine(t, Config{MaxRows: 10})
		require.Contains(t, rejectionOf(t, e, numbers+"select i from n limit 11").Message, "more than 10 rows")
		require.Len(t, ask(t, e, numbers+"select i from n limit 10"), 10)
	})
	t.Run("bytes", func(t *testing.T) {
		e := newTestEngine(t, Config{MaxBytes: 1000})
		require.Contains(t, rejectionOf(t, e, numbers+"select printf('%0100d', i) as x from n limit 10").Message, "larger than 1000 bytes")
	})
	t.Run("memory", func(t *testing.T) {
		e := newTestEngine(t, Config{MemoryLimit: 32 << 20})
		rejection := rejectionOf(t, e, numbers+"select x from (select printf('%0100000d', i) as x from n limit 1000) order by 1 desc")
		require.Contains(t, rejection.Message, "memory limit")
	})
	t.Run("time", func(t *testing.T) {
		e := newTestEngine(t, Config{Timeout: 20 * time.Millisecond})
		for _, query := range []string{"select count(*) from n", "select i from n where i = 1 or i < 0"} {
			_, err := e.WriteJSON(t.Context(), numbers+query, Options{}, io.Discard)
			require.ErrorIs(t, err, ErrTimeout)
			require.ErrorContains(t, err, "the limit is 20ms")
		}
	})
}

// TestATruncatedResultContainsTheError fails after part of the result was sent.
func TestATruncatedResultContainsTheError(t *testing.T) {
	e := newTestEngine(t, Config{MaxRows: 2000})
	var buf bytes.Buffer
	_, err := e.WriteJSON(t.Context(), "with recursive n(i) as (select 1 union all select i + 1 from n) select printf('%0100d', i) as x from n", Options{}, &buf)
	require.Error(t, err)
	require.True(t, strings.HasPrefix(buf.String(), `{"rows":[{"x":`))
	require.Contains(t, buf.String(), `],"error":{"message":"the result has more than 2000 rows`)
}

func TestAQueryEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &memory{scan: func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}}
	e := newTestEngine(t, Config{Partitions: m})
	_, err := e.WriteJSON(ctx, "select count(*) from sys_invocation", Options{}, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	m.scan = nil
	require.Equal(t, "0", toText(ask(t, e, "select count(*) as n from sys_invocation")[0]["n"]))
}

func TestConcurrentQueriesAreBounded(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	m := &memory{scan: func(context.Context) error {
		running <- struct{}{}
		<-release
		return nil
	}}
	e := newTestEngine(t, Config{Partitions: m, Concurrent: 1, queueTimeout: time.Millisecond})
	done := make(chan error, 1)
	go func() {
		_, err := e.WriteJSON(t.Context(), "select count(*) from sys_invocation", Options{}, io.Discard)
		done <- err
	}()
	<-running
	_, err := e.WriteJSON(t.Context(), "select 1", Options{}, io.Discard)
	require.ErrorIs(t, err, ErrBusy)
	close(release)
	require.NoError(t, <-done)
	_, err = e.WriteJSON(t.Context(), "select 1", Options{}, io.Discard)
	require.NoError(t, err)
}

// TestConversionEndsAtTheTimeout converts queries whose conversion takes quadratic time.
func TestConversionEndsAtTheTimeout(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: &memory{count: 1}})
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Nanosecond, ErrTimeout)
	defer cancel()
	<-ctx.Done()
	for _, query := range []string{
		"select 1" + strings.Repeat("::int", maxTokens/2-2),
		"select 1" + strings.Repeat("+current_timestamp", maxTokens/2-2),
		"select " + strings.Repeat("platform.public.", maxTokens/4-1) + "x",
		"select (" + strings.Repeat("now()+", maxTokens/5) + "1)",
	} {
		_, err := e.rewrite(ctx, query)
		require.ErrorIs(t, err, ErrTimeout)
	}
}

func TestAPartitionThatCannotBeRead(t *testing.T) {
	m := &memory{count: 4, scan: func(context.Context) error { return partition.ErrNotLeader }}
	_, err := newTestEngine(t, Config{Partitions: m}).WriteJSON(t.Context(), "select * from state", Options{}, io.Discard)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "partition 0")
}

func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"select * from sys_invocation where id = 'x' and status <> 'completed'", "select now() - interval '1 day'::text",
		"with recursive n(i) as (select 1 union all select i+1 from n) select * from n", "select cast(extract(hour from created_at) as varchar) from sys_invocation",
		"values (1, 'a''b', x'00')", "explain select index from platform.public.sys_journal j join state s on s.key = j.name", "select '2026-01-01' < created_at from sys_invocation;",
	} {
		f.Add(query)
	}
	e := newTestEngine(f, Config{Timeout: 200 * time.Millisecond, MaxRows: 100})
	f.Fuzz(func(t *testing.T, query string) {
		_, err := e.WriteJSON(t.Context(), query, Options{}, io.Discard)
		if rejection, ok := errors.AsType[*Error](err); ok {
			require.NotEmpty(t, rejection.Message)
			require.LessOrEqual(t, rejection.Position.Line, strings.Count(query, "\n")+1)
			return
		}
		if err != nil {
			require.ErrorIs(t, err, ErrTimeout)
		}
	})
}
