package fabric

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

func TestScanRequestRoundTrips(t *testing.T) {
	scope := ""
	for name, want := range map[string]partition.Scan{
		"no conditions": {Table: partition.State, Keys: partition.AllKeys},
		"all conditions": {
			Table: partition.Invocations, Detail: partition.Whole, From: []byte{1, 0}, ID: invocationID(3), Ahead: true,
			Keys: partition.KeyRange{First: 5, Last: 1 << 63}, Scope: &scope, Services: []string{"S", "T"}, Objects: []string{""},
			Handlers: []string{"h"}, Statuses: []machine.Status{machine.Completed}, Strong: true, Events: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got partition.Scan
			p := newFake(true)
			p.scan = func(_ context.Context, s *partition.Scan) (partition.Page, error) {
				got = *s
				return partition.Page{Next: []byte("next"), Read: 7}, nil
			}
			r, _ := pair(t, p)
			page, err := r.Scan(t.Context(), &want)
			require.NoError(t, err)
			require.Equal(t, partition.Page{Rows: []partition.Row{}, Next: []byte("next"), Read: 7}, page)
			require.Equal(t, want, got)
		})
	}
}

func TestScanRowsRoundTrip(t *testing.T) {
	o := machine.Object{Scope: "s", Service: "O", Key: "k"}
	for name, c := range map[string]struct {
		table partition.Table
		row   partition.Row
	}{
		"invocation": {partition.Invocations, partition.Row{Record: sampleRecord()}},
		"invocation with a history": {partition.Invocations, partition.Row{Record: sampleRecord(), Events: []machine.Event{
			{Kind: machine.AttemptFailed, At: 5, Entries: 2, Attempts: 1, Failure: &machine.AttemptFailure{Code: 500, Message: "boom"}},
			{Kind: machine.EnteredPause, At: 6, Pause: &machine.PauseRecord{Cause: machine.AttemptsUsedUp, At: 6}},
		}}},
		"entry": {partition.Journal, partition.Row{
			ID: invocationID(1), Index: 4, Size: 5, Entry: journal.Entry{Type: journal.Run, Payload: []byte("entry"), AppendedAt: 9},
		}},
		"entry without payload": {partition.Journal, partition.Row{ID: invocationID(1), Size: 5, Entry: journal.Entry{Type: journal.Run}}},
		"state":                 {partition.State, partition.Row{Object: o, Key: "a\xff", Value: []byte("v"), Size: 1}},
		"promise": {partition.Promises, partition.Row{
			Object: o, Key: "p", Promise: machine.Promise{Result: &journal.Result{Value: []byte("v")}},
		}},
		"pending promise": {partition.Promises, partition.Row{Object: o, Key: "p"}},
		"lock":            {partition.Locks, partition.Row{Object: o, ID: invocationID(2), Since: 1234}},
		"waiting":         {partition.Waiting, partition.Row{Object: o, ID: invocationID(2), Index: 1, Ahead: new(uint64(0))}},
		"line": {partition.LockQueues, partition.Row{Queue: &partition.Queue{
			ID: ids.OfVQueue("", "", "O", "k"), Key: flowcontrol.QueueKey{Service: "O"}, Object: "k",
			VQueue: flowcontrol.VQueue{Waiting: 2}, Head: flowcontrol.Queued{ID: invocationID(2), At: 5},
		}}},
		"vqueue whose head waits for its key": {partition.Queues, partition.Row{Queue: &partition.Queue{
			ID: flowcontrol.QueueKey{Scope: "s", Service: "O"}.ID(), Key: flowcontrol.QueueKey{Scope: "s", Service: "O"}, HeadKey: "k\xff",
			VQueue: flowcontrol.VQueue{Waiting: 2}, Head: flowcontrol.Queued{ID: invocationID(2), At: 5}, Blocked: flowcontrol.Blocked{Cause: flowcontrol.ByKey},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newFake(true)
			p.scan = func(context.Context, *partition.Scan) (partition.Page, error) {
				return partition.Page{Rows: []partition.Row{c.row}}, nil
			}
			r, _ := pair(t, p)
			page, err := r.Scan(t.Context(), &partition.Scan{Table: c.table, ID: ids.Invocation{}})
			require.NoError(t, err)
			require.Equal(t, []partition.Row{c.row}, page.Rows)
		})
	}
}
