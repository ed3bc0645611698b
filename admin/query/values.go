package query

import (
	"platform/internal/subscription"
	"platform/partition/journal"
)

// Values of columns in several tables.
var (
	serviceTypes      = []string{"service", "virtual_object", "workflow"}
	queuedStages      = []string{"inbox", "running", "suspended", "paused", "finished"}
	queuedStatuses    = []string{"new", "scheduled", "started", "backing-off", "killed", "cancelled", "failed", "succeeded"}
	subscriptionNames = []string{
		string(subscription.Starting), string(subscription.Running), string(subscription.Paused), string(subscription.Blocked),
		string(subscription.Throttled), string(subscription.Draining), string(subscription.Failed), string(subscription.Orphaned),
	}
	invocationValues = map[string][]string{
		"target_service_ty": serviceTypes,
		"invoked_by":        SourceNames,
		"completion_result": {"success", "failure"},
		"last_pause_cause":  {"operator", "attempts-used-up", "unretryable-failure", "deployment-change", "unknown"},
	}
)

// knownValues lists all values that a column of text can have, by table and column. Queries that
// compare such a column with another value get a notice.
var knownValues = map[string]map[string][]string{
	"sys_invocation": with(invocationValues, "status",
		"scheduled", "pending", "ready", "running", "backing-off", "suspended", "paused", "completed"),
	"sys_invocation_status": with(invocationValues, "status",
		"inboxed", "scheduled", "invoked", "suspended", "paused", "completed"),
	"sys_awakeable":           {"invocation_status": {"suspended", "ready", "running", "backing-off"}, "target_service_ty": serviceTypes},
	"sys_journal":             {"entry_type": entryTypes()},
	"sys_journal_events":      {"event_type": {"TransientError", "Paused", "Resumed", "Suspended", "CancelRequested"}},
	"sys_service":             {"ty": serviceTypes},
	"sys_deployment":          {"ty": {"http", "lambda"}},
	"sys_job":                 {"operation": {"cancel", "kill", "pause", "resume", "restart-as-new", "purge"}, "state": {"running", "done", "stopped", "failed", "unknown"}},
	"sys_user_limits":         {"level": {"Scope", "Level1", "Level2"}},
	"sys_scheduler":           {"status": {"ready", "scheduled", "blocked", "dormant"}, "blocked_on": {"paused", "scope-paused", "lock", "limit-key-concurrency", "throttling-rules"}},
	"sys_vqueues":             {"stage": queuedStages, "status": queuedStatuses},
	"sys_vqueue_entry_status": {"stage": queuedStages, "status": queuedStatuses},
	"sys_subscription": {
		"state": subscriptionNames, "ordering": {"key", "partition", "none"}, "on_error": {"block", "skip", "dead-letter"},
	},
	"sys_subscription_partition": {"state": subscriptionNames},
	"nodes": {
		"state": {"alive", "dead", "left", "unknown"}, "storage_state": {"read-write", "read-only"}, "worker_state": {"active", "draining"},
		"metadata_server_state": {"leader", "voter", "learner", "none", "unknown"},
	},
	"partition_state": {
		"target_mode": {"Leader", "Follower"}, "effective_mode": {"Leader", "LeaderElect", "Follower", "Learner", "Quarantined"},
		"replay_status": {"Active", "CatchingUp"},
	},
	"partition_replica_set": {"membership": {"current", "leaving"}},
}

// with returns a copy of the values of columns with another column.
func with(values map[string][]string, column string, also ...string) map[string][]string {
	all := map[string][]string{column: also}
	for name, known := range values {
		all[name] = known
	}
	return all
}

// entryTypes returns the types of journal entries, such as "Command: Sleep".
func entryTypes() (names []string) {
	for _, t := range journal.Types() {
		names = append(names, t.String())
	}
	return names
}
