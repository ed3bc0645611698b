package query

import (
	"slices"

	"platform/partition/machine"
)

// Columns of entries that two tables have.
var (
	entryKey = selects(byPartitionKey, plain("partition_key", U64, "shard key of the row", func(e *vqueueEntry) value { return number(e.ID.PartitionKey()) }))
	entryID  = selects(byID, plain("entry_id", Text, "invocation", func(e *vqueueEntry) value { return e.ID.String() }))

	entryStages = []column[vqueueEntry]{
		plain("stage", Text, "inbox, running, suspended, paused or finished", func(e *vqueueEntry) value { return e.stage() }),
		plain("status", Text, "new, scheduled, started, killed, failed or succeeded", func(e *vqueueEntry) value { return e.status() }),
		plain("has_lock", Bool, "holds its object", func(e *vqueueEntry) value { return boolean(e.HoldsLock) }),
	}
	entrySequence = plain("sequence_number", U64, "order, while it is in the inbox", func(e *vqueueEntry) value { return number(e.QueueSeq) })
	entryHistory  = []column[vqueueEntry]{
		always[vqueueEntry]("entry_kind", Text, "always invocation: changes of state pass by queues", "invocation"),
		plain("created_at", Timestamp, "created", func(e *vqueueEntry) value { return millis(e.CreatedAt) }),
		plain("transitioned_at", Timestamp, "entered this stage", func(e *vqueueEntry) value { return millis(e.Flow.StageAt) }),
		plain("num_attempts", U32, "moves into running", func(e *vqueueEntry) value { return number(e.Flow.Starts) }),
		always[vqueueEntry]("num_errors", U32, "not kept; sys_invocation.retry_count has those of the present attempts", nil),
		plain("num_pauses", U32, "pauses", func(e *vqueueEntry) value { return number(e.Flow.Pauses) }),
		plain("num_suspensions", U32, "suspensions", func(e *vqueueEntry) value { return number(e.Flow.Suspensions) }),
		always[vqueueEntry]("num_yields", U32, "always zero: nothing yields", int64(0)),
		plain("first_attempt_at", Timestamp, "first start", func(e *vqueueEntry) value { return millis(e.RunningAt) }),
		plain("latest_attempt_at", Timestamp, "latest start", func(e *vqueueEntry) value { return millis(e.Flow.StartedAt) }),
		plain("first_runnable_at", Timestamp, "earliest possible first start", func(e *vqueueEntry) value { return millis(e.Flow.RunnableAt) }),
		plain("deployment", Text, "pinned deployment", func(e *vqueueEntry) value { return text(string(e.Pin.Deployment)) }),
		plain("priority", U32, "0 to 9, the most urgent", func(e *vqueueEntry) value { return number(e.Priority) }),
	}
)

// startAt is when an entry that is delayed may start.
func startAt(e *vqueueEntry) value {
	if e.Status != machine.Scheduled {
		return nil
	}
	return millis(e.StartAt)
}

func sysVqueues() *Table {
	queue := plain("id", Text, "queue id", func(e *vqueueEntry) value { return vqueueOf(e.Invocation) })
	return define("sys_vqueues", "Entries of virtual queues, in every stage.", entrySource, slices.Concat(
		[]column[vqueueEntry]{entryKey, queue}, entryStages,
		[]column[vqueueEntry]{plain("run_at", Timestamp, "eligible after", startAt), entrySequence, entryID}, entryHistory))
}

func sysVqueueEntryStatus() *Table {
	queue := plain("vqueue_id", Text, "queue id", func(e *vqueueEntry) value { return vqueueOf(e.Invocation) })
	return define("sys_vqueue_entry_status", "Entries of virtual queues and what they have waited for.", entrySource, slices.Concat(
		[]column[vqueueEntry]{entryKey, entryID, queue}, entryStages,
		[]column[vqueueEntry]{plain("next_at", Timestamp, "next planned transition", startAt), entrySequence}, entryHistory,
		[]column[vqueueEntry]{
			always[vqueueEntry]("needed_memory", U64, "not kept", nil),
			always[vqueueEntry]("retry_attempts", U32, "not kept; see sys_invocation.retry_count", nil),
			always[vqueueEntry]("retry_count_since_last_stored_command", U32, "not kept; see sys_invocation.retry_count", nil),
		},
		waitColumns("latest_attempt", "before the latest start", func(w *machine.Wait) int64 { return w.Latest }),
		waitColumns("total", "before all starts", func(w *machine.Wait) int64 { return w.Total }),
	))
}

func waitColumns(prefix, when string, of func(*machine.Wait) int64) (columns []column[vqueueEntry]) {
	for _, b := range []struct {
		name, about string
		wait        func(*machine.Flow) *machine.Wait // nil: holds attempts back, not queues
	}{
		{"invoker_concurrency", "slots of the node", nil},
		{"throttling_rules", "rates", func(f *machine.Flow) *machine.Wait { return &f.Throttling }},
		{"invoker_throttling", "throttling of the node", nil},
		{"invoker_memory", "memory of the invoker", nil},
		{"concurrency_rules", "concurrency limits", func(f *machine.Flow) *machine.Wait { return &f.Rules }},
		{"lock", "its key", func(f *machine.Flow) *machine.Wait { return &f.Lock }},
		{"deployment_concurrency", "capacity of the deployment", nil},
	} {
		columns = append(columns, plain(prefix+"_blocked_on_"+b.name, Duration, "waited for "+b.about+" "+when, func(e *vqueueEntry) value {
			if b.wait == nil {
				return int64(0)
			}
			return of(b.wait(e.Flow))
		}))
	}
	return columns
}
