package query

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rewrittenText is what SQLite gets, without spaces that say nothing.
func rewrittenText(t *testing.T, e *Engine, text string) string {
	t.Helper()
	q, err := e.rewrite(t.Context(), text)
	require.NoError(t, err, text)
	var texts []string
	for _, t := range q.tokens {
		texts = append(texts, t.text)
	}
	return strings.Join(texts, " ")
}

func TestRewriting(t *testing.T) {
	e := newTestEngine(t, Config{})
	for query, want := range map[string]string{
		"select 1;":                                                                      "select 1",
		"select 'a;b' -- no; end":                                                        "select 'a;b'",
		"select /* x */ 1":                                                               "select 1",
		"select * from platform.public.state":                                            "select * from state",
		"select public.state.key from state":                                             "select state . key from state",
		"select index from sys_journal":                                                  `select "index" from sys_journal`,
		"select 1 order by index desc":                                                   `select 1 order by "index" desc`,
		"select j.index from sys_journal j":                                              `select j . "index" from sys_journal j`,
		"select `key` from state":                                                        `select "key" from state`,
		"select now() - interval '1 hour'":                                               "select time_sub ( now ( ) , 3600000 )",
		"select now() + interval '1' day":                                                "select time_add ( now ( ) , 86400000 )",
		"select now() - interval 2 hours":                                                "select time_sub ( now ( ) , 7200000 )",
		"select now() - interval '1 day 30min'":                                          "select time_sub ( now ( ) , 88200000 )",
		"select current_timestamp":                                                       "select now ( )",
		"select completed_at - created_at from sys_invocation":                           "select time_diff ( completed_at , created_at ) from sys_invocation",
		"select i.completed_at - i.created_at > interval '5 seconds'":                    "select time_diff ( i . completed_at , i . created_at ) > 5000",
		"select a - b":                                                                   "select a - b",
		"select max(created_at) - min(created_at)":                                       "select time_diff ( max ( created_at ) , min ( created_at ) )",
		"select x - t from (select created_at as t)":                                     "select minus ( x , t ) from ( select created_at as t )",
		"select t - x from (select max(created_at) as t)":                                "select time_sub ( t , x ) from ( select max ( created_at ) as t )",
		"with s as (select max(created_at) as t) select t - interval '1s' from s":        "with s as ( select max ( created_at ) as t ) select time_sub ( t , 1000 ) from s",
		"select key::text":                                                               "select CAST ( key AS TEXT )",
		"select count(*)::int + 1":                                                       "select CAST ( count ( * ) AS INTEGER ) + 1",
		"select cast(a as varchar(10))":                                                  "select CAST ( a AS TEXT )",
		"select cast('2026-01-01' as timestamp)":                                         "select to_timestamp ( '2026-01-01' )",
		"select timestamp '2026-01-01 10:00:00'":                                         "select to_timestamp ( '2026-01-01 10:00:00' )",
		"select extract(hour from created_at)":                                           "select date_part ( 'hour' , created_at )",
		"select 1 where target ilike 'g%'":                                               "select 1 where target LIKE '\x02' || 'g%'",
		"select first_value(id order by created_at), last_value(id) from state":          "select first_of ( id order by created_at ) , last_of ( id ) from state",
		"select first_value(id) over (order by id) from state":                           "select first_value ( id ) over ( order by id ) from state",
		"select i.id from (select * from sys_inbox i limit 5) where i.id = 'a'":          "select i . id from ( select * from sys_inbox i limit 5 ) i where i . id = 'a'",
		"select state.key from (select * from public.state)":                             "select state . key from ( select * from state ) state",
		"select x.key from (select * from state s) x, (select 1 from state a, state b)":  "select x . key from ( select * from state s ) x , ( select 1 from state a , state b )",
		"select * from (select *, 1 as n from (select key from state))":                  "select * from ( select * , 1 as n from ( select key from state ) state )",
		"select * from (select key from state window w as (order by key))":               "select * from ( select key from state window w as ( order by key ) ) state",
		"select 1 where partition_key = 13803158172436129791":                            "select 1 where partition_key = -4643585901273421825",
		"select 1 where created_at >= '2026-11-20 10:00:00'":                             "select 1 where created_at >= '2026-11-20T10:00:00.000Z'",
		"select 1 where created_at between '2026-01-01' and '2026-02-01T00:00:00+01:00'": "select 1 where created_at between '2026-01-01T00:00:00.000Z' and '2026-01-31T23:00:00.000Z'",
		"select 1 where value_utf8 = '2026-01-01'":                                       "select 1 where value_utf8 = '2026-01-01'",
		"explain select 1":                                                               "EXPLAIN QUERY PLAN select 1",
		"explain analyze verbose select 1":                                               "EXPLAIN QUERY PLAN select 1",
	} {
		require.Equal(t, want, rewrittenText(t, e, query), query)
	}
	_, err := e.rewrite(t.Context(), "where a > 2")
	require.ErrorContains(t, err, "queries can only read", "no statement")
}

func TestColumnsAreNamedAsTheyWereWritten(t *testing.T) {
	e := newTestEngine(t, Config{})
	rows := ask(t, e, "select count(*), count( length(id) ), count(a.id) from sys_invocation a where now()-interval '1 day'<a.created_at or 1<2")
	require.Len(t, rows, 1)
	require.Equal(t, []string{"count( length(id) )", "count(*)", "count(a.id)"}, slices.Sorted(maps.Keys(rows[0])))
}

func TestWhatQueriesCompute(t *testing.T) {
	e := newTestEngine(t, Config{clock: func() time.Time { return time.Date(2026, 11, 20, 18, 21, 39, 411e6, time.UTC) }})
	for query, want := range map[string]string{
		"select now()":                                                       "2026-11-20T18:21:39.411Z",
		"select now() - interval '1 day'":                                    "2026-11-19T18:21:39.411Z",
		"select now() - (now() - interval '90 seconds')":                     "90000",
		"select iso_duration(90000)":                                         "PT90S",
		"select iso_duration(0)":                                             "P0D",
		"select iso_duration(1500)":                                          "PT1.5S",
		"select iso_duration(-60)":                                           "-PT0.06S",
		"select to_timestamp('2026-11-20 10:00') < now()":                    "true",
		"select date_trunc('hour', now())":                                   "2026-11-20T18:00:00.000Z",
		"select date_trunc('week', now())":                                   "2026-11-16T00:00:00.000Z",
		"select date_trunc('quarter', now())":                                "2026-10-01T00:00:00.000Z",
		"select extract(epoch from now())":                                   "1.795198899411e+09",
		"select extract(dow from now())":                                     "5",
		"select array_contains('[1,2,3]', 2)":                                "true",
		"select array_contains('[1000000, 12345678901234]', 12345678901234)": "true",
		"select array_contains('[1000000]', 1000000)":                        "true",
		"select array_contains('[9007199254740992]', 9007199254740993)":      "false",
		"select array_contains('[1.5, 1e3]', 1000)":                          "true",
		"select array_contains('[9007199254740993]', 9007199254740993)":      "true",
		"select array_contains('[\"2\",[2],{\"a\":2}]', 2)":                  "true",
		"select array_contains('[[2],{\"a\":2},null]', 2)":                   "false",
		"select array_contains('[\"a\\u0062\"]', 'ab')":                      "true",
		"select array_contains('[false, true]', true)":                       "true",
		"select array_contains('[]', 'a')":                                   "false",
		"select array_length('[\"a\",\"b\"]')":                               "2",
		"select array_length('[]')":                                          "0",
		"select '{\"a\":{\"b\":7}}' ->> '$.a.b'":                             "7",
		"select json_extract('{\"a\":[1,2]}', '$.a[1]')":                     "2",
		"select count(*) from json_each('[1,2,3]')":                          "3",
		"select regexp_like('Counter', '^C.*r$')":                            "true",
		"select 'Counter' regexp 'unt'":                                      "true",
		"select split_part('a/b/c', '/', 2)":                                 "b",
		"select split_part('a/b/c', '/', 3)":                                 "c",
		"select split_part('a/b/c', '/', 4)":                                 "",
		"select split_part('a/b/c', '/', -1)":                                "c",
		"select split_part('a/b/c', '/', -3)":                                "a",
		"select split_part('a/b/c', '/', -4)":                                "",
		"select split_part('abc', '', 1)":                                    "abc",
		"select split_part('abc', '', 2)":                                    "",
		"select strpos('hello', 'l')":                                        "3",
		"select 'A' ilike 'a'":                                               "true",
		"select coalesce(null, 3)":                                           "3",
		"select case when 1 in (1, 2) then 'yes' else 'no' end":              "yes",
		"select group_concat(column1, ',') from (values (1), (2))":           "1,2",
		"with recursive n(i) as (select 1 union all select i + 1 from n where i < 10) select sum(i) from n": "55",
		"select row_number() over (order by 1)":              "1",
		"select 13803158172436129791 = -4643585901273421825": "true",
		"select x'00ff'": "00ff",
		"select 1.5":     "1.5",
		"select count(*) from information_schema.tables where table_name = 'sys_invocation'":                        "1",
		"select data_type from information_schema.columns where table_name = 'sys_journal' and column_name = 'raw'": "binary",
	} {
		rows := ask(t, e, query)
		require.Len(t, rows, 1, query)
		require.Len(t, rows[0], 1, query)
		for _, v := range rows[0] {
			require.Equal(t, want, toText(v), query)
		}
	}
}

// Nothing that a query contains may silently get another meaning.
func TestArithmeticWithTimes(t *testing.T) {
	e := newTestEngine(t, Config{clock: func() time.Time { return time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC) }})
	for query, want := range map[string]string{
		"now() - 2 * interval '1 hour'":                                                          "2026-11-20T16:00:00.000Z",
		"now() - interval '1 hour' * 2":                                                          "2026-11-20T16:00:00.000Z",
		"now() - interval '1 day' - 3 * interval '1 hour' / 2 + 5":                               "2026-11-19T16:30:00.005Z",
		"interval '1 hour' + now()":                                                              "2026-11-20T19:00:00.000Z",
		"interval '1 hour' + interval '30 min' + now()":                                          "2026-11-20T19:30:00.000Z",
		"-interval '1 hour' + now()":                                                             "2026-11-20T17:00:00.000Z",
		"now() + -interval '1 hour'":                                                             "2026-11-20T17:00:00.000Z",
		"interval '1 hour' - interval '1 minute'":                                                "3540000",
		"10 - 3 - interval '1 second'":                                                           "-993",
		"now() - '1 hour'::interval":                                                             "2026-11-20T17:00:00.000Z",
		"now() - cast('1 hour' as interval)":                                                     "2026-11-20T17:00:00.000Z",
		"current_date - interval '1 day' < current_date":                                         "true",
		"case when 1 = 1 then now() end - interval '1 hour'":                                     "2026-11-20T17:00:00.000Z",
		"now() - case when 1 = 1 then interval '1 day' end":                                      "2026-11-19T18:00:00.000Z",
		"(select 7 as created_at) - 1":                                                           "6",
		"x - 1 from (select max(now()) as x) union select x - 1 from (select 7 as x) order by 1": "6",
		"now()::date":                                                             "2026-11-20T00:00:00.000Z",
		"'true'::boolean":                                                         "1",
		"cast('OFF' as bool)":                                                     "0",
		"cast(5 as uint64) + '3'::int8":                                           "8",
		"max(now()) > '2026-11-20 10:00'":                                         "true",
		"'2026-11-20 19:00' > max(now())":                                         "true",
		"max(now()) between '2026-11-20 19:00' and '20'":                          "false",
		"coalesce(null, (select count(*) from state))":                            "0",
		"0 as a, (select count(*) from state) + 2 as b":                           "2",
		"max(1, (select count(*) from state)) + 1":                                "2",
		"9223372036854775807 + (select created_at from (select 1 as created_at))": "9.223372036854776e+18",
	} {
		rows := ask(t, e, "select "+query)
		require.NotEmpty(t, rows, query)
		var last any // the columns are sorted by their names
		for _, name := range slices.Sorted(maps.Keys(rows[0])) {
			last = rows[0][name]
		}
		require.Equal(t, want, toText(last), query)
	}
	for query, want := range map[string]string{
		"now() - '1 fortnight'::interval":                     `column 16: invalid interval "1 fortnight"`,
		"cast(2 as interval)":                                 "column 18: only a text can be cast to an interval",
		"'{}'::json":                                          "column 14: casts to the type json are not possible",
		"cast(now() as time)":                                 "casts to the type time are not possible",
		"1000 - now()":                                        `the time "2026-11-20T18:00:00.000Z" cannot be subtracted from a number`,
		"to_timestamp('2026-11-20 10:00:00 PST')":             "is not a time",
		"state - interval '1 day' from (select 'a' as state)": `"a" is not a time`,
	} {
		require.Contains(t, rejectionOf(t, e, "select "+query).Error(), want, query)
	}
	require.Equal(t, []string{"now() - 2 * interval '1 hour'"}, slices.Collect(maps.Keys(ask(t, e, "select now() - 2 * interval '1 hour'")[0])))
}
