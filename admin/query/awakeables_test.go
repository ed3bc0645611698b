package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

// The awakeables of suspended invocations, and of running ones that report what they await.
func TestAwakeablesThatInvocationsWaitFor(t *testing.T) {
	id := func(n byte) ids.Invocation { return ids.NewInvocation(7, [16]byte{n}) }
	awakeable := func(n byte, signal uint32) string { return ids.Awakeable{Invocation: id(n), Signal: signal}.String() }
	of := func(n byte, status machine.Status, await *journal.Future) partition.Row {
		return partition.Row{Record: partition.Record{Invocation: &machine.Invocation{
			ID: id(n), Status: status, Await: await, CreatedAt: 1000, ModifiedAt: 5000,
			Target: machine.Target{Service: "Payment", Handler: "charge", Type: target.Service},
		}}}
	}
	nested := &journal.Future{
		Signals: []uint32{1, 18}, Names: []string{"approved"}, Completions: []uint32{17}, // 1 is the cancel signal
		Nested: []journal.Future{{Signals: []uint32{17, 18}}},
	}
	running := of(2, machine.Invoked, nil)
	running.Record.Attempts = &attempts.Status{InFlight: true, ActiveAt: time.UnixMilli(6000), Awaiting: &journal.Await{On: &journal.Future{Signals: []uint32{20}}}}
	silent := of(3, machine.Invoked, nil)
	silent.Record.Attempts = &attempts.Status{InFlight: true}
	m := &memory{rows: map[partition.Table][]partition.Row{partition.Invocations: {
		of(1, machine.Suspended, nested), running, silent, of(4, machine.Suspended, &journal.Future{Completions: []uint32{17}}), of(5, machine.Completed, nil),
	}}}
	e := newTestEngine(t, Config{Partitions: m})

	require.Equal(t, []map[string]any{
		{"id": awakeable(1, 17), "invocation_id": id(1).String(), "invocation_status": "suspended", "target": "Payment/charge", "waiting_since": "1970-01-01T00:00:05.000Z"},
		{"id": awakeable(1, 18), "invocation_id": id(1).String(), "invocation_status": "suspended", "target": "Payment/charge", "waiting_since": "1970-01-01T00:00:05.000Z"},
		{"id": awakeable(2, 20), "invocation_id": id(2).String(), "invocation_status": "running", "target": "Payment/charge", "waiting_since": "1970-01-01T00:00:06.000Z"},
	}, ask(t, e, "select id, invocation_id, invocation_status, target, waiting_since from sys_awakeable order by waiting_since, id"))
	require.Equal(t, []machine.Status{machine.Suspended, machine.Invoked}, m.asked[0].Statuses, "completed invocations are not read")
	require.Len(t, ask(t, e, "select count(*) as n from sys_awakeable"), 1)

	m.asked = nil
	require.Len(t, ask(t, e, "select target from sys_awakeable where id = '"+awakeable(1, 18)+"'"), 1)
	require.Equal(t, id(1), m.asked[0].ID, "an awakeable is read with its invocation")
	require.Empty(t, ask(t, e, "select target from sys_awakeable where id = '"+awakeable(2, 17)+"'"), "it is not awaited")
	require.Empty(t, ask(t, e, "select target from sys_awakeable where id = 'sign_1'"))
	require.Len(t, ask(t, e, "select target from sys_awakeable where invocation_id = '"+id(1).String()+"'"), 2)
}
