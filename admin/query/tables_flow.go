package query

import (
	"context"
	"slices"
	"time"
)

// flowRows is the source of a table of flow control, which is empty without it.
func flowRows[R any](rows func(Flow, context.Context) ([]R, error), identity func(*R, []byte) []byte) source[R] {
	return fixed(func(ctx context.Context, s *session) ([]R, error) {
		if s.engine.cfg.Flow == nil {
			return nil, nil
		}
		return rows(s.engine.cfg.Flow, ctx)
	}, identity)
}

// plain makes a column that selects nothing at its source.
func plain[R any](name string, typ Type, about string, value func(*R) value) column[R] {
	return column[R]{name: name, typ: typ, about: about, value: value}
}

func duration(d time.Duration) value { return d.Milliseconds() }

func flowTables() []*Table {
	return []*Table{sysRules(), sysUserLimits(), sysScheduler(), sysVqueues(), sysVqueueMeta(), sysVqueueEntryStatus()}
}

func sysRules() *Table {
	return define("sys_rules", "The rule book.", flowRows(Flow.Rules, func(r *RuleRow, b []byte) []byte { return append(b, r.Pattern...) }),
		[]column[RuleRow]{
			plain("pattern", Text, "scopes and limit keys that it is for", func(r *RuleRow) value { return r.Pattern }),
			plain("concurrency", U32, "limit; NULL is unlimited", func(r *RuleRow) value { return positive(r.Concurrency) }),
			plain("description", Text, "free text", func(r *RuleRow) value { return text(r.Description) }),
			plain("disabled", Bool, "parked", func(r *RuleRow) value { return boolean(r.Disabled) }),
			plain("version", U32, "version of the rule", func(r *RuleRow) value { return number(r.Version) }),
			plain("last_modified", Timestamp, "last change", func(r *RuleRow) value { return moment(r.ModifiedAt) }),
		})
}

func sysUserLimits() *Table {
	identity := func(r *LimitRow, b []byte) []byte { return append(b, r.Scope+"/"+r.L1+"/"+r.L2...) }
	return define("sys_user_limits", "Counters of limits that are in use.", flowRows(Flow.UserLimits, identity), []column[LimitRow]{
		plain("partition_key", U64, "shard key of the row", func(r *LimitRow) value { return number(r.PartitionKey) }),
		plain("scope", Text, "scope of the counter", func(r *LimitRow) value { return text(r.Scope) }),
		plain("l1", Text, "first part of the limit key", func(r *LimitRow) value { return text(r.L1) }),
		plain("l2", Text, "second part", func(r *LimitRow) value { return text(r.L2) }),
		plain("level", Text, "Scope, Level1 or Level2", func(r *LimitRow) value { return r.Level }),
		plain("usage", U32, "running now", func(r *LimitRow) value { return number(r.Usage) }),
		plain("concurrency_limit", U32, "limit; NULL is none", func(r *LimitRow) value { return positive(r.Limit) }),
		plain("rule_pattern", Text, "rule that sets it; [removed] if it is gone", func(r *LimitRow) value { return text(r.Rule) }),
		plain("available", U32, "limit less usage", func(r *LimitRow) value {
			if r.Limit == 0 {
				return nil
			}
			return number(r.Limit - min(r.Usage, r.Limit))
		}),
		plain("num_waiters", U64, "queues that wait for it", func(r *LimitRow) value { return number(r.Waiters) }),
	})
}

func sysScheduler() *Table {
	blocked := func(name, about string, of func(*Blocked) time.Duration) column[HeadRow] {
		return plain(name, Duration, "the head waited for "+about, func(r *HeadRow) value { return duration(of(&r.Blocked)) })
	}
	return define("sys_scheduler", "The head of every queue that is not empty.",
		flowRows(Flow.Heads, func(r *HeadRow, b []byte) []byte { return append(b, r.ID...) }), []column[HeadRow]{
			plain("partition_key", U64, "shard key of the row", func(r *HeadRow) value { return number(r.PartitionKey) }),
			plain("id", Text, "queue id", func(r *HeadRow) value { return r.ID }),
			plain("num_inbox", U64, "entries waiting", func(r *HeadRow) value { return number(r.Inbox) }),
			plain("status", Text, "dormant, ready, scheduled or blocked", func(r *HeadRow) value { return r.Status }),
			plain("head_entry_id", Text, "entry at the head", func(r *HeadRow) value { return text(r.Entry) }),
			plain("scheduled_at", Timestamp, "earliest start if scheduled", func(r *HeadRow) value { return moment(r.ScheduledAt) }),
			plain("blocked_on", Text, "what holds it back", func(r *HeadRow) value { return text(r.BlockedOn) }),
			plain("blocked_on_json", Text, "details", func(r *HeadRow) value { return text(r.BlockedOnJSON) }),
			blocked("invoker_concurrency_block_duration", "slots of the node", func(b *Blocked) time.Duration { return b.InvokerConcurrency }),
			blocked("throttling_rules_block_duration", "throttling rules", func(b *Blocked) time.Duration { return b.ThrottlingRules }),
			blocked("invoker_throttling_block_duration", "throttling of the node", func(b *Blocked) time.Duration { return b.InvokerThrottling }),
			blocked("invoker_memory_block_duration", "memory of the invoker", func(b *Blocked) time.Duration { return b.InvokerMemory }),
			blocked("concurrency_rules_block_duration", "concurrency rules", func(b *Blocked) time.Duration { return b.ConcurrencyRules }),
			blocked("lock_block_duration", "the object", func(b *Blocked) time.Duration { return b.Lock }),
			blocked("deployment_concurrency_block_duration", "capacity of the deployment", func(b *Blocked) time.Duration { return b.DeploymentConcurrency }),
		})
}

func sysVqueueMeta() *Table {
	at := func(name, about string, of func(*QueueRow) time.Time) column[QueueRow] {
		return plain(name, Timestamp, about, func(r *QueueRow) value { return moment(of(r)) })
	}
	average := func(name, about string, of func(*QueueRow) time.Duration) column[QueueRow] {
		return plain(name, Duration, "moving average: "+about, func(r *QueueRow) value { return duration(of(r)) })
	}
	count := func(name, about string, of func(*QueueRow) uint64) column[QueueRow] {
		return plain(name, U64, about, func(r *QueueRow) value { return number(of(r)) })
	}
	return define("sys_vqueue_meta", "Virtual queues.", flowRows(Flow.Queues, func(r *QueueRow, b []byte) []byte { return append(b, r.ID...) }),
		[]column[QueueRow]{
			plain("partition_key", U64, "shard key of the row", func(r *QueueRow) value { return number(r.PartitionKey) }),
			plain("id", Text, "queue id", func(r *QueueRow) value { return r.ID }),
			plain("is_active", Bool, "has unfinished entries and is not paused", func(r *QueueRow) value { return boolean(r.Active) }),
			plain("queue_is_paused", Bool, "paused by an operator", func(r *QueueRow) value { return boolean(r.Paused) }),
			plain("service_name", Text, "service", func(r *QueueRow) value { return text(r.Service) }),
			plain("scope", Text, "scope", func(r *QueueRow) value { return text(r.Scope) }),
			plain("limit_key", Text, "limit key", func(r *QueueRow) value { return text(r.LimitKey) }),
			plain("lock_name", Text, "Service/key of queues of objects", func(r *QueueRow) value { return text(r.Lock) }),
			at("created_at", "created", func(r *QueueRow) time.Time { return r.CreatedAt }),
			at("last_enqueued_at", "last new entry", func(r *QueueRow) time.Time { return r.LastEnqueuedAt }),
			at("last_start_at", "last first start", func(r *QueueRow) time.Time { return r.LastStartAt }),
			at("last_attempt_at", "last start", func(r *QueueRow) time.Time { return r.LastAttemptAt }),
			at("last_finish_at", "last end", func(r *QueueRow) time.Time { return r.LastFinishAt }),
			average("avg_queue_duration", "wait before the first start", func(r *QueueRow) time.Duration { return r.AvgQueue }),
			average("avg_inbox_duration", "in the inbox", func(r *QueueRow) time.Duration { return r.AvgInbox }),
			average("avg_run_duration", "running", func(r *QueueRow) time.Duration { return r.AvgRun }),
			average("avg_suspension_duration", "suspended", func(r *QueueRow) time.Duration { return r.AvgSuspension }),
			average("avg_end_to_end_duration", "from runnable to completed", func(r *QueueRow) time.Duration { return r.AvgEndToEnd }),
			average("avg_blocked_on_concurrency_rules", "held back by rules", func(r *QueueRow) time.Duration { return r.AvgBlocked.ConcurrencyRules }),
			average("avg_blocked_on_invoker_concurrency", "by slots of the node", func(r *QueueRow) time.Duration { return r.AvgBlocked.InvokerConcurrency }),
			average("avg_blocked_on_invoker_throttling", "by throttling of the node", func(r *QueueRow) time.Duration { return r.AvgBlocked.InvokerThrottling }),
			average("avg_blocked_on_lock", "by the object", func(r *QueueRow) time.Duration { return r.AvgBlocked.Lock }),
			count("num_inbox", "waiting", func(r *QueueRow) uint64 { return r.NumInbox }),
			count("num_running", "running", func(r *QueueRow) uint64 { return r.NumRunning }),
			count("num_suspended", "suspended", func(r *QueueRow) uint64 { return r.NumSuspended }),
			count("num_paused", "paused", func(r *QueueRow) uint64 { return r.NumPaused }),
			count("num_finished", "finished and still kept", func(r *QueueRow) uint64 { return r.NumFinished }),
		})
}

// Columns of entries that two tables have.
var (
	entryStages = []column[EntryRow]{
		plain("stage", Text, "inbox, running, suspended, paused or finished", func(r *EntryRow) value { return r.Stage }),
		plain("status", Text, "new, scheduled, started, backing-off, yielded, killed, cancelled, failed or succeeded", func(r *EntryRow) value { return r.Status }),
		plain("has_lock", Bool, "holds the object", func(r *EntryRow) value { return boolean(r.HasLock) }),
	}
	entrySequence = plain("sequence_number", U64, "order", func(r *EntryRow) value { return number(r.Sequence) })
	entryID       = plain("entry_id", Text, "invocation or change of state", func(r *EntryRow) value { return r.Entry.String() })
	entryKey      = plain("partition_key", U64, "shard key of the row", func(r *EntryRow) value { return number(r.PartitionKey) })
	entryHistory  = []column[EntryRow]{
		plain("entry_kind", Text, "invocation or state-mutation", func(r *EntryRow) value { return r.Kind }),
		plain("created_at", Timestamp, "created", func(r *EntryRow) value { return moment(r.CreatedAt) }),
		plain("transitioned_at", Timestamp, "entered this stage", func(r *EntryRow) value { return moment(r.TransitionedAt) }),
		plain("num_attempts", U32, "starts", func(r *EntryRow) value { return number(r.Attempts) }),
		plain("num_errors", U32, "failed attempts", func(r *EntryRow) value { return number(r.Errors) }),
		plain("num_pauses", U32, "pauses", func(r *EntryRow) value { return number(r.Pauses) }),
		plain("num_suspensions", U32, "suspensions", func(r *EntryRow) value { return number(r.Suspensions) }),
		plain("num_yields", U32, "yields", func(r *EntryRow) value { return number(r.Yields) }),
		plain("first_attempt_at", Timestamp, "first start", func(r *EntryRow) value { return moment(r.FirstAttemptAt) }),
		plain("latest_attempt_at", Timestamp, "latest start", func(r *EntryRow) value { return moment(r.LatestAttemptAt) }),
		plain("first_runnable_at", Timestamp, "earliest possible first start", func(r *EntryRow) value { return moment(r.FirstRunnableAt) }),
		plain("deployment", Text, "pinned deployment", func(r *EntryRow) value { return text(r.Deployment) }),
	}
)

var entryRows = flowRows(Flow.Entries, func(r *EntryRow, b []byte) []byte { return append(b, r.Entry[:]...) })

func sysVqueues() *Table {
	return define("sys_vqueues", "Entries of virtual queues, in every stage.", entryRows, slices.Concat(
		[]column[EntryRow]{entryKey, plain("id", Text, "queue id", func(r *EntryRow) value { return r.Queue })}, entryStages,
		[]column[EntryRow]{
			plain("run_at", Timestamp, "eligible after, in the inbox", func(r *EntryRow) value { return moment(r.RunAt) }),
			entrySequence, entryID,
		}, entryHistory))
}

func sysVqueueEntryStatus() *Table {
	return define("sys_vqueue_entry_status", "Entries of virtual queues and what they have waited for.", entryRows, slices.Concat(
		[]column[EntryRow]{entryKey, entryID, plain("vqueue_id", Text, "queue id", func(r *EntryRow) value { return r.Queue })}, entryStages,
		[]column[EntryRow]{plain("next_at", Timestamp, "next planned transition", func(r *EntryRow) value { return moment(r.NextAt) }), entrySequence},
		entryHistory,
		[]column[EntryRow]{
			plain("needed_memory", U64, "memory asked of the invoker", func(r *EntryRow) value { return number(r.NeededMemory) }),
			plain("retry_attempts", U32, "repeated attempts", func(r *EntryRow) value { return number(r.RetryAttempts) }),
			plain("retry_count_since_last_stored_command", U32, "repetitions without progress", func(r *EntryRow) value { return number(r.RetriesSinceLastCommand) }),
		},
		blockedColumns("latest_attempt", "before the latest attempt", func(r *EntryRow) *Blocked { return &r.LatestBlocked }),
		blockedColumns("total", "before all attempts", func(r *EntryRow) *Blocked { return &r.TotalBlocked }),
	))
}

func blockedColumns(prefix, when string, of func(*EntryRow) *Blocked) (columns []column[EntryRow]) {
	for _, b := range []struct {
		name, about string
		of          func(*Blocked) time.Duration
	}{
		{"invoker_concurrency", "slots of the node", func(b *Blocked) time.Duration { return b.InvokerConcurrency }},
		{"throttling_rules", "throttling rules", func(b *Blocked) time.Duration { return b.ThrottlingRules }},
		{"invoker_throttling", "throttling of the node", func(b *Blocked) time.Duration { return b.InvokerThrottling }},
		{"invoker_memory", "memory of the invoker", func(b *Blocked) time.Duration { return b.InvokerMemory }},
		{"concurrency_rules", "concurrency rules", func(b *Blocked) time.Duration { return b.ConcurrencyRules }},
		{"lock", "the object", func(b *Blocked) time.Duration { return b.Lock }},
		{"deployment_concurrency", "capacity of the deployment", func(b *Blocked) time.Duration { return b.DeploymentConcurrency }},
	} {
		columns = append(columns, plain(prefix+"_blocked_on_"+b.name, Duration, "waited for "+b.about+" "+when,
			func(r *EntryRow) value { return duration(b.of(of(r))) }))
	}
	return columns
}
