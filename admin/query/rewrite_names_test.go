package query

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRewrittenColumnsAreNamedAsTheyWereWritten(t *testing.T) {
	e := newTestEngine(t, Config{})
	for query, want := range map[string][]string{
		"select created_at - interval '1 day', id::text, index from sys_journal, (select now() as created_at)": {"created_at - interval '1 day'", "id::text", "index"},
		"select max(created_at) - min(created_at) from sys_invocation":                                         {"max(created_at) - min(created_at)"},
		"select current_timestamp, interval '1 day', timestamp '2026-01-01', 'a' ilike 'A'":                    {"current_timestamp", "interval '1 day'", "timestamp '2026-01-01'", "'a' ilike 'A'"},
		"select cast(extract(hour from now()) as int), 13803158172436129791, -9223372036854775808":             {"cast(extract(hour from now()) as int)", "13803158172436129791", "-9223372036854775808"},
		"select (now() - interval '1 day'), x+1 from (select 2 as x)":                                          {"(now() - interval '1 day')", "x+1"},
		"select * from (select 1::int, now() - interval '1d')":                                                 {"1::int", "now() - interval '1d'"},
		"select 1::int, 1::int::text, cast(1 as int) union all select 1, 2, 3 order by 1":                      {"1::int", "1::int::text", "cast(1 as int)"},
		"select count( * ), 1::text \"b\", 2::int c, 3::int as d from state where key = 'k'":                   {"count( * )", "b", "c", "d"},
		"select (select count(*) from state where service_name in ('a', 'b')) from sys_locks":                  {"(select count(*) from state where service_name in ('a', 'b'))"},
		"select platform.public.state.key::text is distinct from 'a' from state":                               {"state.key::text is distinct from 'a'"},
		"select * from state where key::text = 'x'":                                                            {"partition_key", "scope", "service_name", "service_key", "key", "key_length", "value_utf8", "value", "value_length"},
		"show tables": {"table_catalog", "table_schema", "table_name", "table_type"},
	} {
		var buf bytes.Buffer
		_, err := e.WriteJSON(t.Context(), query, Options{Columns: true}, &buf)
		require.NoError(t, err, query)
		var answer struct{ Columns []struct{ Name string } }
		require.NoError(t, json.Unmarshal(buf.Bytes(), &answer))
		var got []string
		for _, c := range answer.Columns {
			got = append(got, c.Name)
		}
		require.Equal(t, want, got, query)
	}
}

// TestInvalidArithmetic pins what docs/sql.md says about it.
func TestInvalidArithmetic(t *testing.T) {
	e := newTestEngine(t, Config{})
	for _, query := range []string{"1/0", "1.0/0", "1%0", "mod(5, 0)", "null + 1", "null = null", "sqrt(-1)", "ln(0)"} {
		require.Equal(t, []map[string]any{{}}, ask(t, e, "select "+query+" as x"), "%s is NULL", query)
	}
	for query, want := range map[string]string{
		"9223372036854775807 + 1": "9.223372036854776e+18", "-9223372036854775808": "-9223372036854775808",
		"cast('abc' as int)": "0", "cast('12abc' as int)": "12", "time_add('2026-01-01', 100000000000000)": "5194-11-16T09:46:40.000Z",
		"time_add('2026-01-01', 900000000000000000)": "9999-12-31T23:59:59.999Z", "time_add('2026-01-01', -90000000000000)": "0000-01-01T00:00:00.000Z",
	} {
		require.Equal(t, want, toText(ask(t, e, "select "+query+" as x")[0]["x"]), query)
	}
	for query, want := range map[string]string{
		"sum(x) from (select 9223372036854775807 as x union all select 1)": "integer overflow", "abs(-9223372036854775807 - 1)": "integer overflow",
		"cast('soon' as timestamp)": `"soon" is not a time`, "now() + 'abc'": `"abc" is not a number`,
	} {
		require.Contains(t, rejectionOf(t, e, "select "+query).Error(), want)
	}
}
