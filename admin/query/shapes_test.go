package query

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/partition"
	"platform/partition/machine"
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
	"whole rows": {
		"SELECT id, target, target_service_name, target_service_key, target_handler_name, target_service_ty, idempotency_key, invoked_by, invoked_by_id, invoked_by_subscription_id, invoked_by_target, restarted_from, pinned_deployment_id, pinned_service_protocol_version, journal_size, journal_commands_size, created_at, modified_at, inboxed_at, scheduled_at, scheduled_start_at, running_at, completed_at, completion_retention, journal_retention, retry_count, last_start_at, next_retry_at, last_attempt_deployment_id, last_attempt_server, last_failure, last_failure_error_code, status, completion_result, completion_failure, last_awaiting_on_future_json, suspended_waiting_for_completions, suspended_waiting_for_signals, suspended_waiting_future_json, scope, vqueue_id, limit_key, invoked_by_service_name, trace_id, created_using_restate_version, last_failure_related_entry_index, last_failure_related_entry_name, last_failure_related_entry_type, last_failure_related_command_index, last_failure_related_command_name, last_failure_related_command_type FROM sys_invocation WHERE id = 'inv_1a'",
		"SELECT id, index, appended_at, entry_type, name, raw_length, entry_json, raw, version, completed, sleep_wakeup_at, invoked_id, invoked_target, promise_name FROM sys_journal WHERE id = 'inv_1a' ORDER BY index",
		"SELECT id, index, appended_at, entry_type, name, raw_length, entry_lite_json, version, completed, sleep_wakeup_at, invoked_id, invoked_target, promise_name FROM sys_journal WHERE id = 'inv_1a' ORDER BY index",
		"SELECT id, index, appended_at, entry_type, name, entry_lite_json, raw, version, completed, sleep_wakeup_at, invoked_id, invoked_target, promise_name FROM sys_journal WHERE id = 'inv_1a' AND index = 0",
		"SELECT id, status, completion_result, completion_failure, pinned_deployment_id, last_attempt_deployment_id, target_service_name, target_service_key, target_handler_name, vqueue_id FROM sys_invocation WHERE id IN ('inv_1a', 'inv_1b')",
		"SELECT i.id, i.target, i.target_service_name, i.target_service_key, i.target_handler_name, i.target_service_ty, i.idempotency_key, i.invoked_by, i.invoked_by_id, i.invoked_by_subscription_id, i.invoked_by_target, i.restarted_from, i.pinned_deployment_id, i.pinned_service_protocol_version, i.journal_size, i.journal_commands_size, i.created_at, i.modified_at, i.inboxed_at, i.scheduled_at, i.scheduled_start_at, i.running_at, i.completed_at, i.completion_retention, i.journal_retention, i.retry_count, i.last_start_at, i.next_retry_at, i.last_attempt_deployment_id, i.last_attempt_server, i.last_failure, i.last_failure_error_code, i.status, i.completion_result, i.completion_failure, i.last_awaiting_on_future_json, i.suspended_waiting_for_completions, i.suspended_waiting_for_signals, i.suspended_waiting_future_json, i.scope, i.vqueue_id, i.limit_key FROM sys_invocation i WHERE i.id IN ('inv_1a', 'inv_1b') AND i.target_service_name <> 'x' ORDER BY i.created_at DESC NULLS LAST",
		"SELECT v.entry_id, v.vqueue_id, v.stage, v.status, v.next_at, v.created_at, v.transitioned_at, v.first_attempt_at, v.latest_attempt_at, v.first_runnable_at, v.retry_attempts, v.retry_count_since_last_stored_command, v.num_attempts, v.num_errors, v.deployment FROM sys_vqueue_entry_status v WHERE v.entry_id IN ('inv_1a') AND v.entry_kind = 'invocation' AND v.stage = 'finished' ORDER BY v.transitioned_at DESC NULLS LAST",
		"SELECT entry_id AS id, entry_kind AS kind, vqueue_id, stage, status, has_lock, next_at AS run_at, sequence_number, created_at, transitioned_at, first_attempt_at, latest_attempt_at, first_runnable_at, retry_attempts, retry_count_since_last_stored_command, num_attempts, num_errors, deployment FROM sys_vqueue_entry_status WHERE entry_id IN ('inv_1a') AND stage <> 'inbox'",
		"SELECT e.entry_id, e.vqueue_id, e.stage, e.status, e.sequence_number, e.num_suspensions, e.num_pauses, e.num_yields, e.total_blocked_on_invoker_concurrency, e.total_blocked_on_throttling_rules, e.total_blocked_on_invoker_throttling, e.total_blocked_on_invoker_memory, e.total_blocked_on_concurrency_rules, e.total_blocked_on_lock, e.total_blocked_on_deployment_concurrency, e.latest_attempt_blocked_on_invoker_concurrency, e.latest_attempt_blocked_on_throttling_rules, e.latest_attempt_blocked_on_invoker_throttling, e.latest_attempt_blocked_on_invoker_memory, e.latest_attempt_blocked_on_concurrency_rules, e.latest_attempt_blocked_on_lock, e.latest_attempt_blocked_on_deployment_concurrency FROM sys_vqueue_entry_status e WHERE e.entry_id = 'inv_1a' AND e.entry_kind = 'invocation'",
		"SELECT id AS vqueue_id, entry_id AS id, entry_kind AS kind, stage, status, has_lock, sequence_number, created_at, transitioned_at, first_runnable_at, first_attempt_at, latest_attempt_at, num_attempts, num_errors, num_pauses, num_suspensions, num_yields, deployment FROM sys_vqueues WHERE id = 'vq_1a' AND stage = 'finished' LIMIT 26",
		"SELECT id AS vqueue_id, entry_id AS id, entry_kind AS kind, stage, status, has_lock, run_at, sequence_number, created_at, transitioned_at FROM sys_vqueues WHERE id = 'vq_1a' AND stage = 'inbox' LIMIT 26",
		"SELECT service_name, scope, lock_name, limit_key, created_at, queue_is_paused, num_inbox, num_running, num_suspended, num_paused, num_finished, avg_inbox_duration, avg_run_duration, avg_suspension_duration, avg_queue_duration, avg_end_to_end_duration, avg_blocked_on_concurrency_rules, avg_blocked_on_invoker_concurrency, avg_blocked_on_invoker_throttling, avg_blocked_on_lock, last_enqueued_at, last_start_at, last_attempt_at, last_finish_at FROM sys_vqueue_meta WHERE id = 'vq_1a'",
		"SELECT s.status, s.blocked_on, s.blocked_on_json, s.head_entry_id, s.scheduled_at, s.invoker_concurrency_block_duration, s.throttling_rules_block_duration, s.invoker_throttling_block_duration, s.invoker_memory_block_duration, s.concurrency_rules_block_duration, s.lock_block_duration, s.deployment_concurrency_block_duration, h.entry_id AS head_status_entry_id, h.stage AS head_stage, h.status AS head_status, h.entry_kind AS head_kind, h.transitioned_at AS head_transitioned_at, h.next_at AS head_next_at, h.created_at AS head_created_at, h.sequence_number AS head_sequence_number, h.retry_attempts AS head_retry_attempts, h.num_attempts AS head_num_attempts, h.num_errors AS head_num_errors, h.num_suspensions AS head_num_suspensions, h.num_pauses AS head_num_pauses, h.num_yields AS head_num_yields, h.deployment AS head_deployment, h.has_lock AS head_has_lock, h.total_blocked_on_invoker_concurrency AS head_total_blocked_on_invoker_concurrency, h.total_blocked_on_throttling_rules AS head_total_blocked_on_throttling_rules, h.total_blocked_on_invoker_throttling AS head_total_blocked_on_invoker_throttling, h.total_blocked_on_invoker_memory AS head_total_blocked_on_invoker_memory, h.total_blocked_on_concurrency_rules AS head_total_blocked_on_concurrency_rules, h.total_blocked_on_lock AS head_total_blocked_on_lock, h.total_blocked_on_deployment_concurrency AS head_total_blocked_on_deployment_concurrency FROM sys_scheduler s LEFT JOIN sys_vqueue_entry_status h ON h.vqueue_id = s.id AND h.entry_id = s.head_entry_id WHERE s.id = 'vq_1a'",
		"SELECT id, status, blocked_on, blocked_on_json, head_entry_id, scheduled_at, invoker_concurrency_block_duration, throttling_rules_block_duration, invoker_throttling_block_duration, invoker_memory_block_duration, concurrency_rules_block_duration, lock_block_duration, deployment_concurrency_block_duration FROM sys_scheduler WHERE id IN ('vq_1a')",
		"SELECT id, queue_is_paused, service_name, scope, limit_key, lock_name, last_enqueued_at, last_start_at, last_attempt_at, last_finish_at, avg_queue_duration, avg_inbox_duration, avg_run_duration, avg_suspension_duration, avg_end_to_end_duration, avg_blocked_on_concurrency_rules, avg_blocked_on_invoker_concurrency, avg_blocked_on_invoker_throttling, avg_blocked_on_lock, num_inbox, num_running, num_suspended, num_paused, num_finished FROM sys_vqueue_meta WHERE id IN ('vq_1a') ORDER BY (COALESCE(num_inbox, 0) + COALESCE(num_running, 0) + COALESCE(num_suspended, 0) + COALESCE(num_paused, 0)) DESC, GREATEST(last_enqueued_at, last_start_at, last_attempt_at, last_finish_at) DESC NULLS LAST, COALESCE(service_name, '') ASC, id ASC",
		"SELECT id, queue_is_paused, service_name, scope, limit_key, lock_name, last_enqueued_at, last_start_at, last_attempt_at, last_finish_at, avg_queue_duration, avg_inbox_duration, avg_run_duration, avg_suspension_duration, avg_end_to_end_duration, avg_blocked_on_concurrency_rules, avg_blocked_on_invoker_concurrency, avg_blocked_on_invoker_throttling, avg_blocked_on_lock, num_inbox, num_running, num_suspended, num_paused, num_finished FROM sys_vqueue_meta WHERE service_name = 'Cart' ORDER BY COALESCE(scope, '') ASC, COALESCE(limit_key, '') ASC, (COALESCE(num_inbox, 0) + COALESCE(num_running, 0) + COALESCE(num_suspended, 0) + COALESCE(num_paused, 0)) DESC, GREATEST(last_enqueued_at, last_start_at, last_attempt_at, last_finish_at) DESC NULLS LAST, COALESCE(service_name, '') ASC, id ASC LIMIT 251",
		"SELECT id, queue_is_paused, service_name, scope, limit_key, lock_name, last_enqueued_at, last_start_at, last_attempt_at, last_finish_at, avg_queue_duration, avg_inbox_duration, avg_run_duration, avg_suspension_duration, avg_end_to_end_duration, avg_blocked_on_concurrency_rules, avg_blocked_on_invoker_concurrency, avg_blocked_on_invoker_throttling, avg_blocked_on_lock, num_inbox, num_running, num_suspended, num_paused, num_finished FROM sys_vqueue_meta WHERE (COALESCE(num_inbox, 0) + COALESCE(num_running, 0) + COALESCE(num_suspended, 0) + COALESCE(num_paused, 0)) = 0 AND (queue_is_paused = true OR GREATEST(last_enqueued_at, last_start_at, last_attempt_at, last_finish_at) > now() - INTERVAL '24 hours') LIMIT 251",
		"SELECT scope, l1, l2, level, usage, concurrency_limit, rule_pattern, available, num_waiters FROM sys_user_limits WHERE rule_pattern IS NOT NULL AND (scope ILIKE '%a%' OR l1 ILIKE '%a%' OR l2 ILIKE '%a%') ORDER BY COALESCE(num_waiters, 0) DESC, (concurrency_limit IS NULL) ASC, COALESCE(CAST(usage AS DOUBLE) / concurrency_limit, 0) DESC, COALESCE(rule_pattern, '') ASC, scope ASC, COALESCE(l1, '') ASC, COALESCE(l2, '') ASC LIMIT 1001",
		"SELECT scope, l1, l2, level, usage, concurrency_limit, rule_pattern, available, num_waiters FROM sys_user_limits WHERE CONCAT_WS('/', l1, l2) ILIKE '%a%' ORDER BY scope LIMIT 5",
		"SELECT v.id AS vqueue_id, v.entry_id AS id, v.entry_kind AS kind, v.stage, v.status, v.has_lock, v.run_at, v.sequence_number, v.created_at, v.transitioned_at FROM sys_vqueues v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart' AND vm.lock_name = 'Cart/k' AND vm.scope = 's' AND vm.num_inbox > 0 LIMIT 250) AND v.stage = 'inbox' ORDER BY v.run_at ASC NULLS LAST LIMIT 26",
		"SELECT service_key, scope, key, value_length, value FROM state WHERE service_name = 'Cart' AND service_key IN ('k') AND (scope IN ('s') OR scope IS NULL) AND value_length <= 2048 LIMIT 1500",
		"SELECT key, value FROM state WHERE service_name = 'Cart' AND service_key = 'k' AND scope IS NULL AND key IN ('total', 'items')",
	},
	"candidates and samples": {
		"SELECT COUNT(1) as total_count FROM (SELECT id, target, target_service_name, target_service_key, target_handler_name, target_service_ty, idempotency_key, invoked_by, invoked_by_id, invoked_by_subscription_id, invoked_by_target, restarted_from, pinned_deployment_id, pinned_service_protocol_version, journal_size, journal_commands_size, created_at, modified_at, inboxed_at, scheduled_at, scheduled_start_at, running_at, completed_at, completion_retention, journal_retention, retry_count, last_start_at, next_retry_at, last_attempt_deployment_id, last_attempt_server, last_failure, last_failure_error_code, status, completion_result, completion_failure, last_awaiting_on_future_json, suspended_waiting_for_completions, suspended_waiting_for_signals, suspended_waiting_future_json, scope, vqueue_id, limit_key FROM sys_invocation LIMIT 200000) WHERE status = 'completed'",
		"SELECT ss.id AS id, ss.created_at AS created_at, ss.status FROM (SELECT id, created_at, status, completion_result, target_service_name FROM sys_invocation_status LIMIT 1000000) ss WHERE ss.status IN ('completed', 'invoked') AND ss.target_service_name = 'Cart' ORDER BY ss.created_at DESC NULLS LAST LIMIT 1000",
		"SELECT COUNT(1) AS queue_count FROM (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart' AND (vm.num_inbox > 0 OR vm.num_finished > 0) LIMIT 100001) limited_service_queues",
		"SELECT v.entry_id, v.stage, v.status FROM sys_vqueue_entry_status v WHERE v.entry_id IN ('inv_1a') AND v.entry_kind = 'invocation'",
		"SELECT ss.id AS id, ss.created_at AS created_at FROM (SELECT id, created_at FROM sys_invocation_status LIMIT 1000000) ss ORDER BY ss.created_at DESC LIMIT 1000",
		"SELECT ss.id AS id FROM (SELECT id, status, created_at FROM sys_invocation_status LIMIT 1000000) ss LEFT JOIN (SELECT id AS state_id, in_flight, retry_count FROM sys_invocation_state) sis ON sis.state_id = ss.id WHERE (ss.status = 'invoked' AND sis.in_flight IS NOT TRUE AND sis.retry_count > 0) ORDER BY ss.created_at DESC LIMIT 1000",
		"SELECT ss.id AS id, ss.created_at AS created_at FROM sys_invocation_status ss WHERE (ss.status = 'completed' AND ss.completion_result = 'success') AND ss.target_service_name = 'Cart' ORDER BY ss.created_at DESC NULLS LAST LIMIT 1000",
		"SELECT v.entry_id AS id, v.created_at AS created_at FROM (SELECT id, entry_id, entry_kind, stage, status, created_at FROM sys_vqueues LIMIT 1000000) v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart' LIMIT 100000) AND v.entry_kind = 'invocation' AND v.stage IN ('inbox', 'finished') ORDER BY v.created_at DESC NULLS LAST LIMIT 1000",
		"SELECT v.entry_id AS id FROM sys_vqueues v WHERE v.entry_kind = 'invocation' AND FALSE ORDER BY v.transitioned_at ASC NULLS LAST LIMIT 1000",
		"SELECT COUNT(1) AS count FROM (SELECT id, status FROM sys_invocation_status LIMIT 1000000) sampled_invocations LEFT JOIN sys_invocation_state sis ON sis.id = sampled_invocations.id WHERE (sampled_invocations.status = 'invoked' AND sis.in_flight IS TRUE)",
		"SELECT COUNT(1) AS count FROM (SELECT id, status, completion_result FROM sys_invocation_status LIMIT 1000000) ss WHERE ss.status = 'completed'",
		"SELECT COUNT(1) AS count FROM sys_vqueues v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart') AND v.entry_kind = 'invocation' AND v.stage = 'finished' AND v.status IN ('succeeded', 'failed')",
		"SELECT COUNT(1) AS count FROM sys_vqueues v WHERE v.entry_kind = 'invocation' AND (v.stage = 'inbox' AND v.status = 'backing-off')",
	},
	"figures of a dashboard": {
		"SELECT CASE WHEN completion_result = 'success' THEN 'succeeded' ELSE 'failed' END AS status, COUNT(1) AS count FROM (SELECT completion_result FROM sys_invocation_status WHERE status = 'completed' AND completed_at >= '2026-01-01T00:00:00.000Z' AND completed_at < '2027-01-01T00:00:00.000Z' LIMIT 1000000) completed_invocations GROUP BY CASE WHEN completion_result = 'success' THEN 'succeeded' ELSE 'failed' END",
		"SELECT sampled_finished.status, COUNT(1) AS count FROM (SELECT status FROM sys_vqueues WHERE stage = 'finished' AND entry_kind = 'invocation' AND transitioned_at >= '2026-01-01T00:00:00.000Z' AND transitioned_at < '2027-01-01T00:00:00.000Z' LIMIT 1000000) sampled_finished GROUP BY sampled_finished.status",
		"SELECT to_unixtime(date_bin(INTERVAL '60 seconds', transitioned_at, TIMESTAMP '1970-01-01T00:00:00')) AS bucket, COUNT(1) FILTER (WHERE status = 'succeeded') AS succeeded, COUNT(1) FILTER (WHERE status = 'failed') AS failed, COUNT(1) FILTER (WHERE status = 'cancelled') AS cancelled, COUNT(1) FILTER (WHERE status = 'killed') AS killed FROM sys_vqueues WHERE stage = 'finished' AND entry_kind = 'invocation' AND transitioned_at >= '2026-01-01T00:00:00.000Z' AND transitioned_at < '2027-01-01T00:00:00.000Z' GROUP BY bucket",
		"SELECT COUNT(1) AS total, SUM(CASE WHEN v.first_runnable_at <= '2027-01-01T00:00:00.000Z' THEN 1 ELSE 0 END) AS due, SUM(CASE WHEN v.first_runnable_at <= '2027-01-01T00:00:00.000Z' THEN 0 ELSE 1 END) AS not_due FROM sys_vqueues v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name IN ('Cart') AND vm.num_inbox > 0 LIMIT 100000) AND v.stage = 'inbox' AND v.entry_kind = 'invocation'",
		"SELECT COUNT(1) AS running FROM sys_invocation_state sis JOIN sys_invocation_status ss ON ss.id = sis.id WHERE sis.in_flight AND ss.status = 'invoked'",
		"SELECT ss.target_service_name AS service_name, COUNT(1) AS running FROM sys_invocation_state sis JOIN sys_invocation_status ss ON ss.id = sis.id WHERE sis.in_flight AND ss.status = 'invoked' AND ss.target_service_name IN ('Cart') GROUP BY ss.target_service_name",
		"SELECT COUNT(1) AS running FROM sys_invocation_state WHERE in_flight",
		"SELECT SUM(CASE WHEN status = 'inboxed' THEN 1 ELSE 0 END) AS inboxed, SUM(CASE WHEN status = 'scheduled' THEN 1 ELSE 0 END) AS scheduled, SUM(CASE WHEN status = 'invoked' THEN 1 ELSE 0 END) AS invoked FROM sys_invocation_status WHERE status IN ('inboxed', 'scheduled', 'invoked')",
		"SELECT target_service_name AS service_name, SUM(CASE WHEN status = 'inboxed' THEN 1 ELSE 0 END) AS inboxed, SUM(CASE WHEN status = 'scheduled' THEN 1 ELSE 0 END) AS scheduled, SUM(CASE WHEN status = 'invoked' THEN 1 ELSE 0 END) AS invoked FROM sys_invocation_status WHERE status IN ('inboxed', 'scheduled', 'invoked') AND target_service_name IN ('Cart') GROUP BY target_service_name",
		"SELECT SUM(CASE WHEN sis.in_flight THEN 1 ELSE 0 END) AS running, SUM(CASE WHEN sis.in_flight IS NOT TRUE AND sis.retry_count > 0 THEN 1 ELSE 0 END) AS backing_off FROM sys_invocation_state sis JOIN sys_invocation_status ss ON ss.id = sis.id WHERE ss.status = 'invoked'",
		"SELECT ss.target_service_name AS service_name, SUM(CASE WHEN sis.in_flight THEN 1 ELSE 0 END) AS running, SUM(CASE WHEN sis.in_flight IS NOT TRUE AND sis.retry_count > 0 THEN 1 ELSE 0 END) AS backing_off FROM sys_invocation_state sis JOIN sys_invocation_status ss ON ss.id = sis.id WHERE ss.status = 'invoked' AND ss.target_service_name IN ('Cart') GROUP BY ss.target_service_name",
		"SELECT v.status, COUNT(1) AS count FROM sys_vqueues v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name IN ('Cart') AND vm.num_inbox > 0 LIMIT 100000) AND v.stage = 'inbox' AND v.entry_kind = 'invocation' GROUP BY v.status",
		"SELECT ss.target_service_name AS service_name, CASE WHEN ss.status = 'inboxed' THEN 'pending' WHEN ss.status = 'invoked' AND sis.in_flight IS TRUE THEN 'running' WHEN ss.status = 'invoked' AND sis.retry_count > 0 THEN 'backing-off' WHEN ss.status = 'invoked' THEN 'ready' WHEN ss.status = 'completed' AND ss.completion_result = 'success' THEN 'succeeded' WHEN ss.status = 'completed' THEN 'failed' ELSE ss.status END AS bucket, COUNT(1) AS count FROM (SELECT id, target_service_name, status, completion_result FROM sys_invocation_status LIMIT 1000000) ss LEFT JOIN sys_invocation_state sis ON sis.id = ss.id GROUP BY ss.target_service_name, CASE WHEN ss.status = 'inboxed' THEN 'pending' WHEN ss.status = 'invoked' AND sis.in_flight IS TRUE THEN 'running' WHEN ss.status = 'invoked' AND sis.retry_count > 0 THEN 'backing-off' WHEN ss.status = 'invoked' THEN 'ready' WHEN ss.status = 'completed' AND ss.completion_result = 'success' THEN 'succeeded' WHEN ss.status = 'completed' THEN 'failed' ELSE ss.status END",
		"SELECT x.status, COUNT(1) AS count FROM (SELECT v.id, v.status FROM sys_vqueues v WHERE v.stage = 'finished' AND v.entry_kind = 'invocation' LIMIT 1000000) x WHERE x.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart' AND vm.num_finished > 0 LIMIT 100000) GROUP BY x.status",
		"SELECT vm.service_name, SUM(vm.num_inbox) AS inbox, SUM(vm.num_running) AS running, SUM(vm.num_suspended) AS suspended, SUM(vm.num_paused) AS paused, SUM(vm.num_finished) AS finished FROM sys_vqueue_meta vm WHERE (vm.num_inbox > 0 OR vm.num_running > 0 OR vm.num_suspended > 0 OR vm.num_paused > 0 OR vm.num_finished > 0) GROUP BY vm.service_name",
		"SELECT COUNT(*) AS n, inv.target_service_name AS service_name, e.event_json ->> 'error_message' AS msg FROM sys_journal_events e LEFT JOIN sys_invocation inv ON inv.id = e.id WHERE e.event_type = 'TransientError' AND e.appended_at > now() - INTERVAL '1 hour' GROUP BY service_name, msg ORDER BY n DESC LIMIT 50",
		"SELECT id, appended_at, event_json ->> 'error_message' AS error_message FROM sys_journal_events WHERE event_type = 'TransientError' AND (event_json ->> 'error_message') LIKE '%o%' ORDER BY appended_at DESC LIMIT 100",
		"SELECT id, target_service_name, completion_failure FROM sys_invocation_status WHERE status = 'completed' AND completion_result = 'failure' AND completion_failure LIKE '%o%' ORDER BY completed_at DESC LIMIT 100",
		"SELECT inv.target_service_name AS service_name, inv.target_handler_name AS handler_name, COUNT(*) AS large_entry_count, MAX(j.raw_length) AS max_payload_bytes FROM sys_journal j JOIN sys_invocation inv ON j.id = inv.id WHERE j.raw_length > 1 GROUP BY inv.target_service_name, inv.target_handler_name ORDER BY max_payload_bytes DESC",
		"SELECT target_service_name, target_service_key, COUNT(*) AS waiting, MIN(created_at) AS oldest_waiting_at FROM sys_invocation WHERE status = 'pending' GROUP BY target_service_name, target_service_key ORDER BY waiting DESC LIMIT 20",
		"SELECT pinned_deployment_id, COUNT(*) AS active_invocations FROM sys_invocation WHERE status <> 'completed' AND pinned_deployment_id IS NOT NULL GROUP BY pinned_deployment_id ORDER BY active_invocations DESC LIMIT 20",
	},
	"objects and workflows": {
		"SELECT lock_name, scope, SUM(num_inbox) AS backlog FROM sys_vqueue_meta WHERE service_name = 'Cart' AND lock_name IS NOT NULL AND num_inbox > 0 AND (SUBSTR(lock_name, CHAR_LENGTH('Cart/') + 1) ILIKE '%k%') GROUP BY lock_name, scope ORDER BY backlog DESC, lock_name ASC, scope ASC NULLS FIRST LIMIT 51",
		"SELECT service_key AS object_key, COUNT(*) AS backlog FROM sys_inbox WHERE service_name = 'Cart' AND service_key ILIKE '%k%' GROUP BY service_key ORDER BY backlog DESC, object_key ASC LIMIT 51",
		"SELECT DISTINCT CAST(partition_key AS VARCHAR) AS partition_key, target_service_key AS object_key, scope FROM sys_invocation_status WHERE target_service_name = 'Cart' AND target_service_ty = 'virtual_object' AND target_service_key IS NOT NULL AND status <> 'completed' LIMIT 51",
		"SELECT DISTINCT CAST(partition_key AS VARCHAR) AS partition_key, service_key AS object_key, scope FROM state WHERE service_name = 'Cart' LIMIT 51",
		"SELECT DISTINCT CAST(partition_key AS VARCHAR) AS partition_key, lock_name, scope FROM sys_vqueue_meta WHERE service_name = 'Cart' AND lock_name IS NOT NULL AND (num_inbox > 0 OR num_running > 0 OR num_suspended > 0 OR num_paused > 0) AND SUBSTR(lock_name, CHAR_LENGTH('Cart/') + 1) NOT ILIKE '%x%' LIMIT 51",
		"SELECT service_key AS object_key, COUNT(*) AS backlog FROM sys_inbox WHERE service_name = 'Cart' AND ((service_key = 'k') OR (service_key = 'l')) GROUP BY service_key",
		"SELECT lock_name, scope, SUM(num_inbox) AS backlog FROM sys_vqueue_meta WHERE partition_key IN (13803158172436129791, 5) AND service_name = 'Cart' AND ((lock_name = 'Cart/k' AND scope IS NULL) OR (lock_name = 'Cart/l' AND scope = 's')) GROUP BY lock_name, scope",
		"SELECT service_key AS object_key, invocation_id AS acquired_by FROM sys_keyed_service_status WHERE service_name = 'Cart' AND invocation_id IS NOT NULL AND ((service_key = 'k'))",
		"SELECT si.id FROM sys_invocation_status si WHERE si.target_service_ty = 'virtual_object' AND si.target_service_name = 'Cart' AND SUBSTR(si.target_service_key, 1) = 'k' AND si.scope IS NULL ORDER BY si.created_at DESC NULLS LAST LIMIT 51",
		"SELECT MIN(v.transitioned_at) AS oldest_inboxed_at FROM sys_vqueues v WHERE v.id IN (SELECT vm.id FROM sys_vqueue_meta vm WHERE vm.service_name = 'Cart' AND vm.lock_name = 'Cart/k' AND vm.scope IS NULL AND vm.num_inbox > 0) AND v.stage = 'inbox'",
		"SELECT COUNT(last_attempt_at) AS attempted_vqueue_count, MIN(CASE WHEN last_attempt_at IS NOT NULL THEN avg_inbox_duration END) AS min_avg_inbox_duration, MAX(CASE WHEN last_attempt_at IS NOT NULL THEN avg_inbox_duration END) AS max_avg_inbox_duration, SUM(num_inbox) AS num_inbox, MAX(last_enqueued_at) AS last_enqueued_at FROM sys_vqueue_meta WHERE service_name = 'Cart' AND lock_name = 'Cart/k' AND scope IS NULL",
		"SELECT MAX(si.created_at) AS last_interaction_at FROM sys_invocation_status si WHERE si.target_service_name = 'Signup' AND si.target_service_ty = 'workflow' AND SUBSTR(si.target_service_key, 1) = 'w' AND si.target_handler_name <> 'run' AND si.scope IS NULL",
		"SELECT id FROM sys_invocation_status WHERE target_service_name = 'Signup' AND target_service_ty = 'workflow' AND target_handler_name = 'run' AND target_service_key IS NOT NULL AND (target_service_key LIKE '%w%' OR id LIKE '%w%') ORDER BY created_at DESC NULLS LAST LIMIT 51",
		"SELECT DISTINCT service_key, scope FROM state WHERE service_name = 'Cart' AND key = 'items' LIMIT 301",
		"SELECT DISTINCT service_name FROM state ORDER BY service_name",
		"WITH active_deployments AS (SELECT deployment_id AS id FROM sys_service WHERE deployment_id IS NOT NULL UNION SELECT deployment AS id FROM sys_vqueues WHERE entry_kind = 'invocation' AND stage != 'finished' AND deployment IS NOT NULL) SELECT id FROM sys_deployment EXCEPT SELECT id FROM active_deployments",
	},
}

func TestStatementsOfOtherClientsRun(t *testing.T) {
	e := newTestEngine(t, Config{})
	for group, statements := range shapes {
		for _, statement := range statements {
			ask(t, e, statement)
			for _, name := range []string{"sys_invocation", "state"} { // with a catalog
				for _, catalog := range []string{"platform", "restate"} {
					ask(t, e, strings.ReplaceAll(statement, "FROM "+name+" ", "FROM "+catalog+".public."+name+" "))
				}
			}
		}
		require.NotEmpty(t, statements, group)
	}
}

// A column that other servers call differently has both names; * has only one of them.
func TestColumnsHaveTheNamesOfOtherServers(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: &memory{rows: map[partition.Table][]partition.Row{partition.Invocations: {
		{Record: partition.Record{Invocation: &machine.Invocation{Target: machine.Target{Service: "S"}, ServerVersion: "1.2.3"}}},
	}}}})
	row := ask(t, e, "SELECT created_using_restate_version, created_using_platform_version FROM sys_invocation LIMIT 1")[0]
	require.NotEmpty(t, row["created_using_platform_version"])
	require.Equal(t, row["created_using_platform_version"], row["created_using_restate_version"])
	row = ask(t, e, "SELECT i.created_using_restate_version v FROM sys_invocation_status i WHERE i.created_using_restate_version IS NOT NULL LIMIT 1")[0]
	require.NotEmpty(t, row["v"])
	require.NotContains(t, ask(t, e, "SELECT * FROM sys_invocation LIMIT 1")[0], "created_using_restate_version")
}

func TestTablesOfOtherServersAreExplained(t *testing.T) {
	e := newTestEngine(t, Config{})
	for _, table := range []string{"metrics_processor", "metrics_node", "metrics_log"} {
		_, err := e.query(t.Context(), "SELECT coalesce(sum(a), 0) FROM "+table, Options{}, new(firstType))
		var rejected *Error
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, "there is no table "+table, rejected.Message)
		require.Contains(t, rejected.Suggestion, "GET /stats")
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
		"char_length('Größe')":                                                                 "5",
		"character_length(NULL)":                                                               "<nil>",
		"substr('Cart/k', char_length('Cart/') + 1)":                                           "k",
		"left('Größe', 3)":                                                                     "Grö",
		"left('Größe', -3)":                                                                    "Gr",
		"left('Größe', 9)":                                                                     "Größe",
		"left('Größe', -9)":                                                                    "",
		"right('Größe', 3)":                                                                    "öße",
		"right('Größe', -3)":                                                                   "ße",
		"right('Größe', 0)":                                                                    "",
		"right('Größe', 9)":                                                                    "Größe",
		"right('Größe', -9)":                                                                   "",
		"(select median(a) from (select 4 as a union all select 1 union all select 2.5 union all select null))":                                               "2.5",
		"(select approx_median(a) from (select 1 as a union all select 2))":                                                                                   "1.5",
		"(select approx_percentile_cont(a, 0.9) from (select 1 as a union all select 11))":                                                                    "10",
		"(select percentile_cont(a, 1) from (select 3 as a union all select 2))":                                                                              "3",
		"(select median(a) from (select null as a)) is null":                                                                                                  "true",
		"(select median(a) is null from (select 1 as a) where a > 1)":                                                                                         "1",
		"(select group_concat(m) from (select median(a) over (order by a rows 1 preceding) as m from (select 1 as a union all select 2 union all select 4)))": "1.0,1.5,3.0",
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
	_, err := e.query(t.Context(), query, Options{}, &f)
	require.NoError(t, err, query)
	return f.typ
}

func TestQuantilesAreBounded(t *testing.T) {
	e := newTestEngine(t, Config{Timeout: time.Minute})
	const numbers = "with recursive n(i) as (select 1 union all select i + 1 from n limit %d) "
	require.Equal(t, "99.01", toText(ask(t, e, fmt.Sprintf(numbers, 100)+"select approx_percentile_cont(i, 0.99) as v from n")[0]["v"]))
	many := fmt.Sprintf(numbers, maxQuantileNumbers+1)
	require.Contains(t, rejectionOf(t, e, many+"select median(i) from n").Message, "at most 2097152 numbers")
	require.Contains(t, rejectionOf(t, e, many+"select median(i) + percentile_cont(i, 0.9) from n where i % 2").Message, "at most 2097152 numbers")
	require.Contains(t, rejectionOf(t, e, "select median('soon')").Message, `"soon" is not a number`)
	require.Contains(t, rejectionOf(t, e, "select approx_percentile_cont(1, 99)").Message, "from 0 to 1")
	require.Equal(t, "1", toText(ask(t, e, "select median(1) as v")[0]["v"]), "the numbers of earlier queries are freed")
}
