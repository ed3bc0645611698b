package query

import (
	"cmp"
	"slices"

	"platform/partition/machine"
)

// Columns of both tables of entries.
var (
	entryKey = selects(byPartitionKey, plain("partition_key", U64, "shard key of the row", func(e *vqueueEntry) value { return number(e.Invocation.ID.PartitionKey()) }))
	entryID  = selects(byID, plain("entry_id", Text, "invocation", func(e *vqueueEntry) value { return e.Invocation.ID.String() }))

	entryStages = []column[vqueueEntry]{
		plain("stage", Text, "inbox, running, suspended, paused or finished", func(e *vqueueEntry) value { return e.stage() }),
		plain("status", Text, "new, scheduled, started, backing-off, killed, cancelled, failed or succeeded", func(e *vqueueEntry) value { return e.status() }),
		plain("has_lock", Bool, "it holds its object", func(e *vqueueEntry) value { return boolean(e.HoldsLock) }),
	}
	entrySequence = plain("sequence_number", U64, "order in the inbox", func(e *vqueueEntry) value { return number(e.QueueSeq) })
	entryAhead    = selects(tellsAhead, plain("num_ahead", U64, "number of entries before it in the queue for its key or for a slot; only when the entry is selected by its id", func(e *vqueueEntry) value {
		if e.Ahead == nil {
			return nil
		}
		return number(*e.Ahead)
	}))
	entryHistory = []column[vqueueEntry]{
		always[vqueueEntry]("entry_kind", Text, "always invocation: state changes bypass queues", "invocation"),
		plain("created_at", Timestamp, "created", func(e *vqueueEntry) value { return millis(e.CreatedAt) }),
		flowColumn("transitioned_at", Timestamp, "entered this stage", func(f *machine.Flow) value { return millis(f.StageAt) }),
		plain("num_attempts", U32, "number of transitions to running; without a scope 1 once it has started", func(e *vqueueEntry) value { return e.starts() }),
		plain("num_errors", U32, "failed attempts; those before a change of leader may be missing", func(e *vqueueEntry) value { return e.errors() }),
		flowColumn("num_pauses", U32, "pauses", func(f *machine.Flow) value { return number(f.Pauses) }),
		flowColumn("num_suspensions", U32, "suspensions", func(f *machine.Flow) value { return number(f.Suspensions) }),
		always[vqueueEntry]("num_yields", U32, "always zero: there is no yielding", int64(0)),
		plain("first_attempt_at", Timestamp, "first start", func(e *vqueueEntry) value { return millis(e.RunningAt) }),
		flowColumn("latest_attempt_at", Timestamp, "latest start", func(f *machine.Flow) value { return millis(f.StartedAt) }),
		plain("first_runnable_at", Timestamp, "earliest possible first start", runnableAt),
		plain("deployment", Text, "pinned deployment", func(e *vqueueEntry) value { return text(string(e.Pin.Deployment)) }),
		plain("priority", U32, "0 to 9; 9 is the highest", func(e *vqueueEntry) value { return number(e.Priority) }),
		entryAhead,
	}
)

// flowColumn returns a column with the flow-control state of an invocation. It is NULL for
// invocations without a scope that wait for an object.
func flowColumn(name string, typ Type, about string, of func(*machine.Flow) value) column[vqueueEntry] {
	return plain(name, typ, about, func(e *vqueueEntry) value {
		if e.Flow == nil {
			return nil
		}
		return of(e.Flow)
	})
}

// starts returns how often an entry has started, as far as it is known. Clients require a number.
func (e *vqueueEntry) starts() value {
	switch {
	case e.Flow != nil:
		return number(e.Flow.Starts)
	case e.RunningAt != 0:
		return number(uint64(1))
	}
	return number(uint64(0))
}

// runnableAt returns when an entry could first run, or will be able to.
func runnableAt(e *vqueueEntry) value {
	at := cmp.Or(e.StartAt, e.CreatedAt)
	if e.Flow != nil {
		at = cmp.Or(e.Flow.RunnableAt, at)
	}
	return millis(at)
}

// startAt returns when a delayed entry may start.
func startAt(e *vqueueEntry) value {
	if e.Status != machine.Scheduled {
		return nil
	}
	return millis(e.StartAt)
}

func sysVqueues() *Table {
	queue := selects(byQueue, plain("id", Text, "queue id", func(e *vqueueEntry) value { return e.queue() }))
	return define("sys_vqueues", "Entries of virtual queues, in every stage.", entrySource, slices.Concat(
		[]column[vqueueEntry]{entryKey, queue}, entryStages,
		[]column[vqueueEntry]{plain("run_at", Timestamp, "eligible after", startAt), entrySequence, entryID}, entryHistory))
}

func sysVqueueEntryStatus() *Table {
	queue := selects(byQueue, plain("vqueue_id", Text, "queue id", func(e *vqueueEntry) value { return e.queue() }))
	return define("sys_vqueue_entry_status", "Entries of virtual queues and what they have waited for.", entrySource, slices.Concat(
		[]column[vqueueEntry]{entryKey, entryID, queue}, entryStages,
		[]column[vqueueEntry]{plain("next_at", Timestamp, "next planned transition", startAt), entrySequence}, entryHistory,
		[]column[vqueueEntry]{
			always[vqueueEntry]("needed_memory", U64, "not kept", nil),
			plain("retry_attempts", U32, "failed attempts since it was admitted or resumed; NULL if none is under way or to come", func(e *vqueueEntry) value {
				if e.Record.Attempts == nil {
					return nil
				}
				return number(e.Record.Attempts.RetryCount)
			}),
			plain("retry_count_since_last_stored_command", U32, "failed attempts that its journal has not outlived yet; NULL if none is under way or to come", func(e *vqueueEntry) value {
				if e.Record.Attempts == nil {
					return nil
				}
				return number(e.Record.Attempts.Unreported)
			}),
		},
		waitColumns("latest_attempt", "before the latest start", func(w *machine.Wait) int64 { return w.Latest }),
		waitColumns("total", "before all starts", func(w *machine.Wait) int64 { return w.Total }),
	))
}

func waitColumns(prefix, when string, of func(*machine.Wait) int64) (columns []column[vqueueEntry]) {
	for _, b := range []struct {
		name, about string
		wait        func(*machine.Flow) *machine.Wait // nil: delays attempts, not queues
	}{
		{"invoker_concurrency", "slots of the node", nil},
		{"throttling_rules", "rates", func(f *machine.Flow) *machine.Wait { return &f.Throttling }},
		{"invoker_throttling", "throttling of the node", nil},
		{"invoker_memory", "memory of the invoker", nil},
		{"concurrency_rules", "concurrency limits", func(f *machine.Flow) *machine.Wait { return &f.Rules }},
		{"lock", "its key", func(f *machine.Flow) *machine.Wait { return &f.Lock }},
		{"deployment_concurrency", "capacity of the deployment", nil},
	} {
		columns = append(columns, flowColumn(prefix+"_blocked_on_"+b.name, Duration, "waited for "+b.about+" "+when, func(f *machine.Flow) value {
			if b.wait == nil {
				return int64(0)
			}
			return of(b.wait(f))
		}))
	}
	return columns
}
