package query

import (
	"context"
	"time"

	"platform/flowcontrol"
	"platform/partition"
)

// plain returns a column whose conditions the source does not evaluate.
func plain[R any](name string, typ Type, about string, value func(*R) value) column[R] {
	return column[R]{name: name, typ: typ, about: about, value: value}
}

// selects sets what conditions on a column select by.
func selects[R any](f field, c column[R]) column[R] {
	c.field = f
	return c
}

func duration(d time.Duration) value { return d.Milliseconds() }

func flowTables() []*Table {
	return []*Table{sysRules(), sysUserLimits(), sysScheduler(), sysVqueues(), sysVqueueMeta(), sysVqueueEntryStatus()}
}

func sysRules() *Table {
	type row = flowcontrol.Rule
	rules := fixed(func(_ context.Context, s *session) ([]row, error) {
		if s.engine.cfg.Rules == nil {
			return nil, nil
		}
		return s.engine.cfg.Rules().Rules, nil
	}, func(r *row, b []byte) []byte { return append(b, r.Pattern.String()...) })
	return define("sys_rules", "The flow-control rules.", rules, []column[row]{
		plain("pattern", Text, "pattern of scopes and limit keys", func(r *row) value { return r.Pattern.String() }),
		plain("concurrency", U32, "maximum that run concurrently; NULL is unlimited", func(r *row) value { return positive(r.Limits.Concurrency) }),
		plain("description", Text, "free text", func(r *row) value { return text(r.Description) }),
		plain("disabled", Bool, "parked", func(r *row) value { return boolean(r.Disabled) }),
		plain("version", U32, "version of the rule", func(r *row) value { return number(r.Version) }),
		plain("last_modified", Timestamp, "last change", func(r *row) value { return millis(r.ModifiedAt) }),
		plain("rate", Text, "maximum that start in a period, such as 100/s; NULL is unlimited", func(r *row) value {
			if r.Limits.Rate == nil {
				return nil
			}
			return r.Limits.Rate.String()
		}),
		plain("queue_limit", U64, "maximum that wait; NULL is unlimited", func(r *row) value {
			if r.Limits.QueueLimit == nil {
				return nil
			}
			return number(*r.Limits.QueueLimit)
		}),
	})
}

func sysUserLimits() *Table {
	type row = *partition.Usage
	usages := converted(partition.Usages, func(_ *session, r *partition.Row) (row, bool) { return r.Usage, true }, usageIdentity).
		owned(byOwnerScope, func(r *row) owner { return owner{scope: (*r).Key.Scope} }) // invocations of all services share a counter
	pause := func(name string, typ Type, about string, of func(*flowcontrol.QueuePause) value) column[row] {
		return plain(name, typ, about, func(r *row) value {
			if (*r).Pause == nil {
				return nil
			}
			return of((*r).Pause)
		})
	}
	return define("sys_user_limits", "Counters of active limits.", usages, []column[row]{
		selects(byPartitionKey, plain("partition_key", U64, "shard key of the row", func(r *row) value { return number(keyOf((*r).Key.Scope)) })),
		selects(byScope, plain("scope", Text, "scope of the counter", func(r *row) value { return text((*r).Key.Scope) })),
		plain("l1", Text, "first part of the limit key", func(r *row) value { return text((*r).Key.LimitKey.L1) }),
		plain("l2", Text, "second part", func(r *row) value { return text((*r).Key.LimitKey.L2) }),
		plain("level", Text, "Scope, Level1 or Level2", func(r *row) value { return (*r).Key.Level().String() }),
		plain("usage", U32, "running now", func(r *row) value { return number((*r).Running) }),
		plain("concurrency_limit", U32, "limit; NULL is none", func(r *row) value {
			if (*r).Rule == nil {
				return nil
			}
			return positive((*r).Rule.Limits.Concurrency)
		}),
		plain("rule_pattern", Text, "rule that sets it; NULL if there is none", func(r *row) value {
			if (*r).Rule == nil {
				return nil
			}
			return (*r).Rule.Pattern.String()
		}),
		plain("available", U32, "limit minus usage", func(r *row) value {
			if (*r).Rule == nil || (*r).Rule.Limits.Concurrency == 0 {
				return nil
			}
			limit := uint64((*r).Rule.Limits.Concurrency)
			return number(limit - min((*r).Running, limit))
		}),
		plain("num_waiters", U64, "invocations blocked by it", func(r *row) value { return number((*r).Waiting) }),
		plain("is_paused", Bool, "an operator has paused the scope", func(r *row) value { return boolean((*r).Pause != nil) }),
		pause("paused_at", Timestamp, "when the scope was paused, while it is", func(p *flowcontrol.QueuePause) value { return millis(p.At) }),
		pause("paused_by", Text, "network address of the client that paused it", func(p *flowcontrol.QueuePause) value { return text(p.By) }),
		pause("pause_reason", Text, "reason that the operator gave", func(p *flowcontrol.QueuePause) value { return text(p.Reason) }),
	})
}

// queueColumns are shared by all tables of queues.
var queueColumns = []column[queueRow]{
	selects(byPartitionKey, plain("partition_key", U64, "shard key of the row", func(q *queueRow) value { return number(q.key()) })),
	selects(byQueue, plain("id", Text, "queue id", func(q *queueRow) value { return q.ID.String() })),
}

func sysScheduler() *Table {
	waited := func(name, about string, cause flowcontrol.Cause) column[queueRow] {
		return plain(name, Duration, "time that the head has waited for "+about, func(q *queueRow) value { return q.waited(time.Now(), cause) })
	}
	never := func(name, about string) column[queueRow] {
		return always[queueRow](name, Duration, "always zero: "+about+" delay attempts, not queues", int64(0))
	}
	return define("sys_scheduler", "The heads of all nonempty queues.", headSource, append(queueColumns[:len(queueColumns):len(queueColumns)],
		plain("num_inbox", U64, "waiting, scheduled ones included", func(q *queueRow) value {
			return number(q.Stages[flowcontrol.Inbox] + q.Stages[flowcontrol.Scheduled])
		}),
		plain("status", Text, "ready, scheduled, blocked, or dormant if it is paused", func(q *queueRow) value { return q.status() }),
		plain("head_entry_id", Text, "entry that gets the next slot, or has waited longest if all wait for their keys; NULL if all are scheduled", func(q *queueRow) value { return invocationText(q.Head.ID) }),
		plain("scheduled_at", Timestamp, "when a rate limit allows the head to start", func(q *queueRow) value { return millis(q.Blocked.Until) }),
		plain("blocked_on", Text, "paused, scope-paused, lock, limit-key-concurrency or throttling-rules", func(q *queueRow) value { return text(q.Blocked.Cause.String()) }),
		plain("blocked_on_json", Text, "details", func(q *queueRow) value { return q.details() }),
		never("invoker_concurrency_block_duration", "slots of the node"),
		waited("throttling_rules_block_duration", "a rate", flowcontrol.ByRate),
		never("invoker_throttling_block_duration", "throttling of the node"),
		never("invoker_memory_block_duration", "memory of the invoker"),
		waited("concurrency_rules_block_duration", "a concurrency limit", flowcontrol.ByConcurrency),
		waited("lock_block_duration", "its key", flowcontrol.ByKey),
		never("deployment_concurrency_block_duration", "capacity of the deployment"),
	))
}

func sysVqueueMeta() *Table {
	at := func(name, about string, of func(*queueRow) int64) column[queueRow] {
		return plain(name, Timestamp, about, func(q *queueRow) value { return millis(of(q)) })
	}
	average := func(name, about string, of func(*flowcontrol.Averages) flowcontrol.Average) column[queueRow] {
		return plain(name, Duration, "moving average: "+about, func(q *queueRow) value {
			micros, known := of(&q.Averages).Micros()
			if !known {
				return nil
			}
			return micros / 1000
		})
	}
	count := func(name, about string, stages ...flowcontrol.Stage) column[queueRow] {
		return plain(name, U64, about, func(q *queueRow) value {
			var n uint64
			for _, s := range stages {
				n += q.Stages[s]
			}
			return number(n)
		})
	}
	pause := func(name string, typ Type, about string, of func(*flowcontrol.QueuePause) value) column[queueRow] {
		return plain(name, typ, about, func(q *queueRow) value {
			if q.Pause == nil {
				return nil
			}
			return of(q.Pause)
		})
	}
	return define("sys_vqueue_meta", "Virtual queues.", queueSource, append(queueColumns[:len(queueColumns):len(queueColumns)],
		plain("is_active", Bool, "has unfinished entries and is not paused", func(q *queueRow) value { return boolean(q.Active()) }),
		plain("queue_is_paused", Bool, "paused by an operator", func(q *queueRow) value { return boolean(q.Paused) }),
		pause("paused_at", Timestamp, "when it was paused, while it is", func(p *flowcontrol.QueuePause) value { return millis(p.At) }),
		pause("paused_by", Text, "network address of the client that paused it", func(p *flowcontrol.QueuePause) value { return text(p.By) }),
		pause("pause_reason", Text, "reason that the operator gave", func(p *flowcontrol.QueuePause) value { return text(p.Reason) }),
		selects(byService, plain("service_name", Text, "service", func(q *queueRow) value { return q.Key.Service })),
		selects(byScope, plain("scope", Text, "scope", func(q *queueRow) value { return text(q.Key.Scope) })),
		plain("limit_key", Text, "limit key", func(q *queueRow) value { return text(q.Key.LimitKey.String()) }),
		plain("lock_name", Text, "object without a scope, as Service/key, that they wait for; NULL for vqueues", func(q *queueRow) value {
			if q.Object == "" {
				return nil
			}
			return q.Key.Service + "/" + q.Object
		}),
		at("created_at", "created; of a queue that is derived from the lock of an object, its oldest known activity", func(q *queueRow) int64 {
			return oldestOf(q.CreatedAt, q.LastEnqueuedAt, q.LastStartAt, q.LastAttemptAt)
		}),
		at("last_enqueued_at", "last new entry", func(q *queueRow) int64 { return q.LastEnqueuedAt }),
		at("last_start_at", "last first start", func(q *queueRow) int64 { return q.LastStartAt }),
		at("last_attempt_at", "last start", func(q *queueRow) int64 { return q.LastAttemptAt }),
		at("last_finish_at", "last end", func(q *queueRow) int64 { return q.LastFinishAt }),
		average("avg_queue_duration", "wait before the first start", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Queue }),
		average("avg_inbox_duration", "in the inbox", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Inbox }),
		average("avg_run_duration", "running", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Run }),
		average("avg_suspension_duration", "suspended", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Suspension }),
		average("avg_end_to_end_duration", "from runnable to completed", func(a *flowcontrol.Averages) flowcontrol.Average { return a.EndToEnd }),
		average("avg_blocked_on_concurrency_rules", "blocked by concurrency limits", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Rules }),
		always[queueRow]("avg_blocked_on_invoker_concurrency", Duration, "always zero: slots of the node delay attempts, not queues", int64(0)),
		average("avg_blocked_on_invoker_throttling", "blocked by rate limits", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Throttling }),
		average("avg_blocked_on_lock", "blocked by the key", func(a *flowcontrol.Averages) flowcontrol.Average { return a.Lock }),
		count("num_inbox", "waiting, scheduled ones included", flowcontrol.Scheduled, flowcontrol.Inbox),
		count("num_running", "running", flowcontrol.Running),
		count("num_suspended", "suspended", flowcontrol.Suspended),
		count("num_paused", "paused", flowcontrol.Paused),
		count("num_finished", "finished and still kept", flowcontrol.Finished),
	))
}

// oldestOf returns the first time if it is known, else the oldest of the others that are known.
func oldestOf(first int64, others ...int64) int64 {
	if first != 0 {
		return first
	}
	oldest := int64(0)
	for _, t := range others {
		if t != 0 && (oldest == 0 || t < oldest) {
			oldest = t
		}
	}
	return oldest
}
