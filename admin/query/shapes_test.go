package query

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shapes are statements of the forms that consoles and command-line clients for this interface
// send, in groups by what they use. Each must run.
var shapes = map[string][]string{
	"lookups": {
		"SELECT * FROM sys_invocation WHERE id = 'inv_1a'",
		"SELECT id, target, status FROM sys_invocation WHERE id IN ('inv_1a', 'inv_1b') AND status <> 'completed'",
		"SELECT inv.id FROM sys_invocation inv WHERE inv.id = 'inv_1a' LIMIT 1",
		"SELECT index, entry_type, name, entry_lite_json, version, completed, sleep_wakeup_at, invoked_id, promise_name FROM sys_journal WHERE id = 'inv_1a' ORDER BY index",
		"SELECT sj.index, sj.entry_json FROM sys_journal sj WHERE sj.id = 'inv_1a' ORDER BY index DESC LIMIT 10",
		"SELECT entry_type, entry_json, raw FROM sys_journal WHERE id = 'inv_1a' AND index = 3",
		"SELECT event_type, event_json, after_journal_entry_index FROM sys_journal_events WHERE id = 'inv_1a' ORDER BY appended_at",
		"SELECT event_json FROM sys_journal_events WHERE id = 'inv_1a' AND event_type = 'Paused' ORDER BY appended_at DESC LIMIT 1",
		"SELECT sequence_number FROM sys_inbox WHERE id = 'inv_1a'",
		"SELECT id, sequence_number FROM sys_vqueues WHERE entry_id = 'inv_1a'",
		"SELECT key, value FROM state WHERE service_name = 'Cart' AND service_key = 'c' AND scope IS NULL ;",
		"SELECT key, value_length, CASE WHEN value_length <= 512 THEN value END AS value FROM state WHERE service_name = 'Cart' AND service_key = 'c' AND key > 'a' ORDER BY key LIMIT 11",
		"SELECT acquired_by, acquired_at FROM sys_locks WHERE lock_name = 'Cart/c' AND scope IS NULL AND acquired_by IS NOT NULL LIMIT 1",
		"SELECT invocation_id FROM sys_keyed_service_status WHERE service_name = 'Cart' AND service_key = 'c' AND invocation_id IS NOT NULL LIMIT 1",
		"SELECT id, status, blocked_on, blocked_on_json, head_entry_id, lock_block_duration FROM sys_scheduler WHERE id IN ('vq_1a', 'vq_1b')",
		"SELECT pattern, concurrency, description, disabled, version, last_modified FROM sys_rules WHERE pattern = 'a/*' ORDER BY pattern DESC LIMIT 5",
		"SELECT stage, transitioned_at, first_attempt_at, first_runnable_at FROM sys_vqueue_entry_status WHERE entry_id = 'inv_1a' AND entry_kind = 'invocation' LIMIT 1",
		"SELECT id FROM sys_invocation_status WHERE target_service_name = 'Signup' AND target_service_ty = 'workflow' AND target_service_key = 'k' AND target_handler_name <> 'run' ORDER BY created_at DESC NULLS LAST LIMIT 3",
		"SELECT id, is_active, queue_is_paused, avg_run_duration, last_finish_at FROM sys_vqueue_meta WHERE id = 'vq_1a'",
	},
	"conditions": {
		"SELECT id FROM sys_invocation WHERE status NOT IN ('completed', 'pending') AND target_handler_name IN ('add', 'get')",
		"SELECT id FROM sys_invocation_state WHERE in_flight IS NOT TRUE LIMIT 10",
		"SELECT id FROM sys_invocation_state WHERE in_flight IS TRUE AND retry_count > 0",
		"SELECT id FROM sys_invocation_status WHERE ((target = 'Cart/add' AND target_service_ty = 'service') OR (target LIKE 'Cart/add/%' AND target_service_ty != 'service')) AND status IN ('invoked', 'suspended')",
		"SELECT counter_name FROM (SELECT scope || '/' || rule_pattern AS counter_name FROM sys_user_limits WHERE scope ILIKE '%a\\_b%' ESCAPE '\\') WHERE counter_name ILIKE '%' || 'x'",
		"SELECT id FROM sys_invocation WHERE SUBSTR(target_service_key, 1) LIKE '%k%' OR SUBSTR(target_service_key, 1) IN ('a', 'b')",
		"SELECT id FROM sys_invocation WHERE id IN (SELECT entry_id FROM sys_vqueues WHERE stage = 'inbox' AND entry_kind = 'invocation')",
		"SELECT id FROM sys_invocation WHERE (status = 'ready' AND id NOT IN (SELECT entry_id FROM sys_vqueues WHERE stage = 'inbox' AND status = 'backing-off'))",
		"SELECT id FROM sys_invocation inv WHERE (inv.pinned_deployment_id IS NOT NULL AND inv.pinned_deployment_id NOT IN (select id from sys_deployment)) AND status != 'completed'",
		"SELECT id FROM sys_invocation inv WHERE inv.target_service_name IN (select name from sys_service where ty = 'virtual_object')",
		"SELECT id, created_at FROM sys_invocation WHERE created_at > '2026-11-20T10:00:00.000Z' ORDER BY created_at ASC LIMIT 1000",
		"SELECT id FROM sys_invocation WHERE completed_at >= '2026-11-20T10:00:00.000Z' AND completed_at < '2026-11-21T10:00:00.000Z'",
		"SELECT id FROM sys_vqueue_meta WHERE (num_inbox + num_running) = 0 AND (queue_is_paused = true OR GREATEST(last_enqueued_at, last_start_at, last_finish_at) > now() - INTERVAL '24 hours') LIMIT 7",
		"SELECT lock_name, scope, acquired_by FROM sys_locks WHERE acquired_by IS NOT NULL AND ((lock_name = 'Cart/a' AND scope IS NULL) OR (lock_name = 'Cart/b' AND scope = 's'))",
		"SELECT id FROM sys_vqueue_meta WHERE COALESCE(LEAST(created_at, last_start_at), now()) < now() - INTERVAL '5 minutes'",
		"SELECT event_json ->> 'error_code' AS code FROM sys_journal_events WHERE event_json ->> 'ty' = 'TransientError'",
	},
	"counts": {
		"SELECT COUNT(1) FROM (SELECT * FROM sys_invocation inv LIMIT 500) WHERE inv.target_service_name IN ('Cart') AND status IN ('running')",
		"SELECT COUNT(1) AS total FROM (SELECT id, status FROM sys_invocation LIMIT 500) WHERE status = 'running'",
		"SELECT COUNT(*) AS position FROM sys_inbox WHERE service_key = 'c' AND service_name = 'Cart' AND sequence_number < 7",
		"SELECT COUNT(1) FROM (SELECT id FROM sys_vqueue_meta WHERE num_inbox > 0 LIMIT 101)",
		"SELECT COUNT(1) AS count FROM sys_invocation_status ss LEFT JOIN sys_invocation_state sis ON sis.id = ss.id WHERE ss.status = 'invoked' AND sis.in_flight IS NOT TRUE",
		"SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'sys_journal' AND column_name IN ('version', 'entry_json')",
		"SELECT COUNT(*) AS n, COALESCE(SUM(value_length), 0) AS size FROM state WHERE service_name = 'Cart' AND service_key = 'c'",
		"SELECT (num_inbox + num_running + num_suspended + num_paused) AS size FROM sys_vqueue_meta WHERE service_name = 'Cart' AND lock_name = 'Cart/c' AND is_active = true",
		"SELECT COUNT(*) FROM sys_promise WHERE service_name = 'Signup' AND service_key = 'k' AND completed = false",
		"SELECT SUM(CASE WHEN in_flight THEN 1 ELSE 0 END) AS running, SUM(CASE WHEN NOT in_flight AND retry_count > 0 THEN 1 ELSE 0 END) AS backing_off FROM sys_invocation_state",
		"SELECT COUNT(1) AS total, SUM(CASE WHEN first_runnable_at <= now() THEN 1 ELSE 0 END) AS due FROM sys_vqueues WHERE stage = 'inbox' AND entry_kind = 'invocation'",
	},
	"groups": {
		"SELECT status, completion_result, target_service_name, target_handler_name, COUNT(1) as count FROM sys_invocation GROUP BY status, completion_result, target_service_name, target_handler_name",
		"SELECT CASE WHEN status = 'inboxed' THEN 'pending' ELSE status END AS s, COUNT(1) FROM sys_invocation_status GROUP BY CASE WHEN status = 'inboxed' THEN 'pending' ELSE status END",
		"SELECT ss.target_service_name AS name, SUM(CASE WHEN ss.status = 'scheduled' THEN 1 ELSE 0 END) AS scheduled FROM sys_invocation_status ss WHERE ss.target_service_name IN ('Cart', 'Signup') GROUP BY ss.target_service_name",
		"SELECT target_service_name, COUNT(1) as n, MIN(created_at) as oldest_at, FIRST_VALUE(id ORDER BY created_at ASC) as oldest FROM sys_invocation WHERE status == 'pending' GROUP BY target_service_name ORDER BY target_service_name",
		"SELECT target_service_key as k, first_value(id) as id, first_value(next_retry_at) as next, sum(retry_count) as retries, 0 as pending FROM sys_invocation GROUP BY target_service_key, status",
		"SELECT rule_pattern, COUNT(*) AS n, SUM(CASE WHEN num_waiters > 0 THEN 1 ELSE 0 END) AS waiting FROM sys_user_limits WHERE rule_pattern IN ('a/*') GROUP BY rule_pattern",
		"SELECT lock_name, scope, SUM(num_inbox) AS backlog FROM sys_vqueue_meta WHERE partition_key IN (13803158172436129791, 5) AND service_name = 'Cart' GROUP BY lock_name, scope ORDER BY backlog DESC, lock_name, scope LIMIT 51",
		"SELECT id, COUNT(*) AS workload FROM sys_vqueues WHERE stage IN ('inbox', 'running') GROUP BY id ORDER BY workload DESC LIMIT 5",
		"SELECT service_name, COALESCE(SUM(value_length), 0) AS size FROM state GROUP BY service_name ORDER BY service_name",
		"SELECT DISTINCT key FROM state WHERE service_name = 'Cart' AND service_key IN ('a', 'b') GROUP BY key",
		"SELECT s.status, COUNT(1) AS count FROM (SELECT v.id, v.status FROM sys_vqueues v WHERE v.stage = 'finished' LIMIT 100) s WHERE s.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.num_finished > 0 LIMIT 10) GROUP BY s.status",
		"SELECT si.status AS status, COUNT(1) AS count FROM (SELECT id, status FROM sys_invocation_status LIMIT 100) si LEFT JOIN (SELECT entry_id, status AS vq_status FROM sys_vqueues WHERE stage = 'inbox') vq ON vq.entry_id = si.id GROUP BY si.status",
		"SELECT to_unixtime(date_bin(INTERVAL '60 seconds', completed_at, TIMESTAMP '1970-01-01T00:00:00')) AS bucket, count(*) FILTER (WHERE completion_result = 'success') AS ok FROM sys_invocation_status WHERE status = 'completed' GROUP BY bucket",
		"SELECT COUNT(last_attempt_at) AS n, MIN(CASE WHEN last_attempt_at IS NOT NULL THEN avg_inbox_duration END) AS shortest, MAX(last_enqueued_at) AS latest FROM sys_vqueue_meta WHERE service_name = 'Cart'",
	},
	"joins, sets and windows": {
		"WITH active AS (SELECT DISTINCT deployment_id AS id FROM sys_service WHERE deployment_id IS NOT NULL UNION SELECT deployment AS id FROM sys_vqueues WHERE stage != 'finished') SELECT d.id AS id FROM sys_deployment d EXCEPT SELECT id FROM active",
		"SELECT position FROM (SELECT entry_id, ROW_NUMBER() OVER (ORDER BY has_lock DESC, run_at ASC, sequence_number ASC, entry_id ASC) AS position FROM sys_vqueues WHERE id = 'vq_1a') ranked WHERE entry_id = 'inv_1a'",
		"SELECT s.status, h.stage AS head_stage FROM sys_scheduler s LEFT JOIN sys_vqueue_entry_status h ON h.vqueue_id = s.id AND h.entry_id = s.head_entry_id WHERE s.id = 'vq_1a'",
		"SELECT inv.id, dp.id IS NOT NULL as known FROM sys_invocation inv LEFT JOIN sys_deployment dp ON dp.id = inv.pinned_deployment_id ORDER BY inv.created_at DESC, inv.id",
		"SELECT ss.id, sis.retry_count AS retries FROM sys_invocation_status ss LEFT JOIN (SELECT id, in_flight, retry_count FROM sys_invocation_state) sis ON sis.id = ss.id ORDER BY ss.modified_at DESC NULLS LAST LIMIT 10",
		"SELECT a.n, b.m FROM (SELECT COUNT(*) AS n FROM sys_service) a CROSS JOIN (SELECT COUNT(*) AS m FROM sys_deployment) b",
		"SELECT v.entry_id FROM sys_vqueues v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart' LIMIT 100) ORDER BY v.run_at ASC NULLS LAST LIMIT 26",
		"SELECT DISTINCT partition_key, target_service_key, scope FROM sys_invocation_status WHERE target_service_name = 'Cart' AND status <> 'completed' LIMIT 51",
	},
}

func TestStatementsOfOtherClientsRun(t *testing.T) {
	e := newTestEngine(t, Config{})
	for group, statements := range shapes {
		for _, statement := range statements {
			ask(t, e, statement)
			for _, name := range []string{"sys_invocation", "state"} { // with a catalog
				ask(t, e, strings.ReplaceAll(statement, "FROM "+name+" ", "FROM platform.public."+name+" "))
			}
		}
		require.NotEmpty(t, statements, group)
	}
}

func TestFunctionsOfOtherClients(t *testing.T) {
	e := newTestEngine(t, Config{})
	for query, want := range map[string]any{
		"to_unixtime('2026-11-20T10:00:07Z')":                                                  "1795168807",
		"date_bin(INTERVAL '1 hour', '2026-11-20T10:59:07Z')":                                  "2026-11-20T10:00:00.000Z",
		"date_bin(INTERVAL '1 hour', '2026-11-20T10:59:07Z', TIMESTAMP '2026-11-20T00:30:00')": "2026-11-20T10:30:00.000Z",
		"date_bin(INTERVAL '1 day', TIMESTAMP '1969-12-31 23:00:00')":                          "1969-12-31T00:00:00.000Z",
		"greatest(1, NULL, 3.5, 2)":                                                            "3.5",
		"least('b', 'a', NULL)":                                                                "a",
		"greatest(NULL, NULL) is null":                                                         "true",
		"greatest(timestamp '2026-11-20', timestamp '2026-11-21') - timestamp '2026-11-20'":    "86400000",
		"'{\"code\":5}' ->> 'code'":                                                            "5",
		"(select first_value(a) from (select 1 as a union all select 2) )":                     "1",
		"(select first_value(a order by a desc) from (select 1 as a union all select 2))":      "2",
		"(select last_value(a) from (select 1 as a union all select 2))":                       "2",
		"(select count(*) filter (where a > 1) from (select 1 as a union all select 2))":       "1",
		"'Cart/add' like 'cart/%'":                                                             "false",
		"'Cart/add' ilike 'cart/%'":                                                            "true",
		"'a_b' ilike 'A\\_%' escape '\\'":                                                      "true",
	} {
		require.Equal(t, want, toText(ask(t, e, "select "+query+" as v")[0]["v"]), query)
	}
}

func TestConditionsAndExtremesHaveTypes(t *testing.T) {
	e := newTestEngine(t, Config{})
	for query, want := range map[string]string{
		"select 1 = 1 as v":                                                              "true",
		"select null is not null as v":                                                   "false",
		"select (1 > 2 or not 3 = 3) as v":                                               "false",
		"select x.*, 1 = 1 as v from (select 1 as a, 2 as b) x":                          "true",
		"select 1 = 1 as v, x.* from (select 1 as a) x":                                  "true",
		"select true as v":                                                               "true",
		"select case when 1 = 1 then 5 else 6 end as v":                                  "5",
		"select (select 1 where 2 = 2) as v":                                             "1",
		"select starts_with('abc', 'a') v":                                               "true",
		"select min(d) as v from (select completion_retention as d from sys_invocation)": "<nil>",
		"with x as (select 1 = 1 as v) select v + 0 as v from x where v":                 "1",
		"select 1 = 1 as v union select 1 = 0 order by 1 desc limit 1":                   "true",
	} {
		require.Equal(t, want, toText(ask(t, e, query)[0]["v"]), query)
	}
	require.Equal(t, Duration, typeOfFirst(t, e, "select max(i.completion_retention) from sys_invocation i"))
	require.Equal(t, Duration, typeOfFirst(t, e, "select min(case when id > 'a' then completion_retention end) as v from sys_invocation"))
	require.Equal(t, Timestamp, typeOfFirst(t, e, "select max(created_at) from sys_invocation"))
	require.Equal(t, Type(""), typeOfFirst(t, e, "select count(*) from sys_invocation"))
	require.Equal(t, Type(""), typeOfFirst(t, e, "select length(created_at) from sys_invocation"))
}

type firstType struct{ typ Type }

func (f *firstType) Columns(_ []string, types []Type, _ []Notice) error { f.typ = types[0]; return nil }
func (f *firstType) Row(Row) error                                      { return nil }

func typeOfFirst(t *testing.T, e *Engine, query string) Type {
	t.Helper()
	var f firstType
	_, err := e.Query(t.Context(), query, &f)
	require.NoError(t, err, query)
	return f.typ
}
