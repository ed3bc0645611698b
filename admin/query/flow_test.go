package query

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// contended is an object without a scope that one invocation holds and another waits for,
// and one invocation with a scope that has failed three times.
func contended(scoped bool) *memory {
	id := func(n byte) ids.Invocation { return ids.NewInvocation(7, [16]byte{n}) }
	object := machine.Target{Service: "Counter", Key: "a", Handler: "add", Type: target.ObjectExclusive}
	attempts := &attempts.Status{RetryCount: 2, Unreported: 1}
	line := &partition.Queue{ID: ids.OfVQueue("", "", "Counter", "a"), Key: flowcontrol.QueueKey{Service: "Counter"}, Object: "a"}
	line.Stages[flowcontrol.Inbox], line.Stages[flowcontrol.Running] = 1, 1
	line.Head, line.Blocked.Cause = flowcontrol.Queued{ID: id(2), At: 1}, flowcontrol.ByKey
	return &memory{scoped: scoped, rows: map[partition.Table][]partition.Row{
		partition.Invocations: {
			{Record: partition.Record{Invocation: &machine.Invocation{ID: id(1), Target: object, Status: machine.Invoked, HoldsLock: true, RunningAt: 5}, Attempts: attempts}},
			{Record: partition.Record{Invocation: &machine.Invocation{ID: id(2), Target: object, Status: machine.Inboxed}}, Ahead: new(uint64(0))},
			{Record: partition.Record{Invocation: &machine.Invocation{ID: id(3), Target: machine.Target{Service: "S", Scope: "s"}, Status: machine.Invoked,
				Flow: &machine.Flow{Errors: 2, Starts: 1}}, Attempts: attempts}},
			{Record: partition.Record{Invocation: &machine.Invocation{ID: id(4), Target: machine.Target{Service: "S"}, Status: machine.Invoked}}},
		},
		partition.LockQueues: {{Queue: line}},
	}}
}

func TestLinesForObjectsAreQueues(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: contended(true)})
	rows := ask(t, e, "select v.entry_id, v.stage, v.status, v.num_errors, m.lock_name, m.num_inbox, s.blocked_on from sys_vqueues v"+
		" join sys_vqueue_meta m on m.id = v.id left join sys_scheduler s on s.id = v.id where m.lock_name = 'Counter/a' order by stage desc")
	require.Len(t, rows, 2)
	require.Equal(t, "running backing-off 2 1 lock", toText(rows[0]["stage"])+" "+toText(rows[0]["status"])+" "+
		toText(rows[0]["num_errors"])+" "+toText(rows[0]["num_inbox"])+" "+toText(rows[0]["blocked_on"]))
	require.Equal(t, "inbox", rows[1]["stage"])
	require.Equal(t, "new", rows[1]["status"])
	rows = ask(t, e, "select num_attempts from sys_vqueues order by entry_id")
	require.ElementsMatch(t, []map[string]any{
		{"num_attempts": json.Number("1")}, {"num_attempts": json.Number("0")}, {"num_attempts": json.Number("1")},
	}, rows, "clients require a number")
	rows = ask(t, e, "select num_errors, num_attempts from sys_vqueues where num_pauses is not null")
	require.Len(t, rows, 1)
	require.Equal(t, "3", toText(rows[0]["num_errors"]), "those of the record and those since")
}

func TestBlockingReasonOfAQueueHead(t *testing.T) {
	m := contended(true)
	scoped := &partition.Queue{ID: ids.OfVQueue("s", "", "Counter", ""), Key: flowcontrol.QueueKey{Scope: "s", Service: "Counter"}, HeadKey: "b"}
	scoped.Stages[flowcontrol.Inbox], scoped.Blocked.Cause = 1, flowcontrol.ByKey
	m.rows[partition.Queues] = []partition.Row{{Queue: scoped}}
	rows := ask(t, newTestEngine(t, Config{Partitions: m}), "select blocked_on_json as j from sys_scheduler order by 1")
	require.Equal(t, []map[string]any{
		{"j": `{"lock_name":"Counter/a","resource":"lock"}`}, {"j": `{"lock_name":"Counter/b","resource":"lock","scope":"s"}`},
	}, rows)
}

func TestAttemptsAreNotifiedOfEntries(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: contended(true)})
	rows := ask(t, e, "select status, retry_attempts, retry_count_since_last_stored_command as since from sys_vqueue_entry_status where num_pauses is not null")
	require.Equal(t, []map[string]any{{"status": "backing-off", "retry_attempts": json.Number("2"), "since": json.Number("1")}}, rows)
	require.Empty(t, ask(t, e, "select 1 from sys_vqueue_entry_status where status = 'new' and retry_attempts is not null"))
}

func TestEndsOfEntriesAreDistinguished(t *testing.T) {
	failed := func(code uint32, message string) *journal.Result {
		return &journal.Result{Failure: &journal.Failure{Code: code, Message: message}}
	}
	for name, c := range map[string]struct {
		inv  machine.Invocation
		want string
	}{
		"success":                    {machine.Invocation{Result: &journal.Result{}}, "succeeded"},
		"failure":                    {machine.Invocation{Result: failed(500, "Cancelled")}, "failed"},
		"conflict":                   {machine.Invocation{Result: failed(409, "taken")}, "failed"},
		"killed":                     {machine.Invocation{Result: failed(409, "killed"), Killed: true}, "killed"},
		"cancelled before its start": {machine.Invocation{Result: failed(409, "canceled"), Killed: true}, "cancelled"},
		"cancelled on its way":       {machine.Invocation{Result: failed(409, "Cancelled"), RunningAt: 1}, "cancelled"},
	} {
		c.inv.Status = machine.Completed
		e := &vqueueEntry{&row{}, &c.inv}
		require.Equal(t, c.want, e.status(), name)
	}
}

func TestQueueOfScheduledInvocations(t *testing.T) {
	m := contended(true)
	queue := &partition.Queue{ID: ids.OfVQueue("s", "", "S", ""), Key: flowcontrol.QueueKey{Scope: "s", Service: "S"}}
	queue.Stages[flowcontrol.Scheduled] = 2
	m.rows[partition.Queues] = []partition.Row{{Queue: queue}}
	e := newTestEngine(t, Config{Partitions: m})
	require.Equal(t, []map[string]any{{"status": "scheduled", "num_inbox": json.Number("2")}}, ask(t, e, "select status, num_inbox from sys_scheduler where id = '"+queue.ID.String()+"'"))
}

func TestWhenEntriesCouldFirstRun(t *testing.T) {
	for name, c := range map[string]struct {
		inv  machine.Invocation
		want int64
	}{
		"scheduled":             {machine.Invocation{CreatedAt: 1, StartAt: 9, Status: machine.Scheduled, Flow: &machine.Flow{}}, 9},
		"started after a delay": {machine.Invocation{CreatedAt: 1, StartAt: 9, Flow: &machine.Flow{RunnableAt: 10}}, 10},
		"without delay":         {machine.Invocation{CreatedAt: 1, Flow: &machine.Flow{RunnableAt: 2}}, 2},
		"of an object":          {machine.Invocation{CreatedAt: 1}, 1},
		"delayed, of an object": {machine.Invocation{CreatedAt: 1, StartAt: 9}, 9},
	} {
		require.Equal(t, millis(c.want), runnableAt(&vqueueEntry{&row{}, &c.inv}), name)
	}
}

func TestWithoutFlowControlThereAreNoQueues(t *testing.T) {
	e := newTestEngine(t, Config{Partitions: contended(false)})
	for _, table := range []string{"sys_vqueue_meta", "sys_scheduler"} {
		require.Empty(t, ask(t, e, "select * from "+table), table)
	}
	require.Len(t, ask(t, e, "select * from sys_vqueues"), 1, "what is left of it is shown")
}

func TestCreationOfDerivedQueues(t *testing.T) {
	require.Equal(t, int64(5), oldestOf(5, 3, 4))
	require.Equal(t, int64(3), oldestOf(0, 4, 0, 3))
	require.Zero(t, oldestOf(0, 0))
}
