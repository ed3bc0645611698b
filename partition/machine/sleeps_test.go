package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// TestOneEntryReadsABoundedPartOfAnEndedJournal ends invocations with pending sleeps at both
// ends of a long journal.
func TestOneEntryReadsABoundedPartOfAnEndedJournal(t *testing.T) {
	const (
		until   = 1 << 30
		steps   = 3000
		forever = 1 << 40
	)
	value := make([]byte, 16<<10)
	key := "again"
	id := ids.NewInvocation(0, [16]byte{1})
	object := machine.Target{Service: "O", Key: "k", Handler: "h", Type: target.ObjectExclusive}
	sleeps := func(st *machinetest.State) (n int) {
		for _, timer := range st.Timers() {
			if timer.Kind == machine.TimerSleep {
				n++
			}
		}
		return n
	}
	invoke := func(request uint64, retention machine.Retention) *machine.Invoke {
		return &machine.Invoke{ID: id, Request: request, Target: object, IdempotencyKey: &key, Input: journal.NewInput(nil, nil), Retention: retention}
	}
	for how, test := range map[string]struct {
		retention machine.Retention
		meanwhile func(b *bounded)
		journal   bool // is kept
		record    uint64
	}{
		"journal kept":     {retention: machine.Retention{Completion: forever, Journal: forever}, journal: true, record: 1},
		"journal not kept": {retention: machine.Retention{Completion: forever}, record: 1},
		"journal expires": {
			retention: machine.Retention{Completion: forever, Journal: 10}, record: 1,
			meanwhile: func(b *bounded) { b.now += 10 },
		},
		"sleeps end": {
			retention: machine.Retention{Completion: forever, Journal: forever}, journal: true, record: 1,
			meanwhile: func(b *bounded) { b.now = until },
		},
		"journal purged": {
			retention: machine.Retention{Completion: forever, Journal: forever}, record: 1,
			meanwhile: func(b *bounded) { b.apply(&machine.Purge{Target: id, Journal: true}) },
		},
		"purged": {
			retention: machine.Retention{Completion: forever, Journal: forever},
			meanwhile: func(b *bounded) { b.apply(&machine.Purge{Target: id}) },
		},
		"expired": {
			retention: machine.Retention{Completion: 1, Journal: 1},
			meanwhile: func(b *bounded) { b.now++ },
		},
		"requested again": { // the earlier one is visible until its sleeps are deleted
			retention: machine.Retention{Completion: 1, Journal: 1},
			meanwhile: func(b *bounded) { b.now++; b.apply(invoke(2, machine.Retention{})) },
		},
	} {
		for _, level := range []feature.Level{feature.Level3, feature.Level4} {
			t.Run(fmt.Sprintf("%s at level %d", how, level), func(t *testing.T) {
				b := newBounded(t, level)
				b.apply(invoke(1, test.retention))
				inv, err := b.st.Invocation(id)
				require.NoError(t, err)
				all := []machine.Step{machinetest.Sleep(1, until), machinetest.Sleep(2, until)}
				for range steps {
					all = append(all, machinetest.SetState("k", value))
				}
				all = append(all, machinetest.Sleep(3, until))
				b.apply(&machine.Progress{ID: id, Attempt: inv.Attempt, Steps: all})
				b.mostRead = 0
				b.apply(&machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{machinetest.Output(journal.Result{}), machinetest.End()}})
				require.Equal(t, level >= feature.Level4, sleeps(b.st.State) > 0, "sleeps that later entries delete")
				if test.meanwhile != nil {
					test.meanwhile(b)
				}
				for range 3 { // a purge that waits is repeated
					b.settle()
					b.now += 1000
				}
				b.settle()
				require.Equal(t, level >= feature.Level4, b.mostRead <= 16<<20+32<<10, "%d bytes", b.mostRead)
				require.Zero(t, sleeps(b.st.State))
				require.Empty(t, b.st.Faults())
				inv, err = b.st.Invocation(id)
				require.NoError(t, err)
				if test.record == 0 {
					require.True(t, inv == nil || level < feature.Level4 && inv.Request == 2)
					return
				}
				require.Equal(t, test.record, inv.Request)
				require.Zero(t, inv.Sleeps)
				require.Equal(t, test.journal, inv.Length > 0)
			})
		}
	}
}

// TestEndedInvocationsOfEarlierLevelsArePurged purges one whose record counts more pending
// sleeps than there are: its handler has used a completion ID twice.
func TestEndedInvocationsOfEarlierLevelsArePurged(t *testing.T) {
	const retention = 1000
	for name, purge := range map[string]func(b *bounded, id ids.Invocation){
		"by timer":    func(b *bounded, _ ids.Invocation) { b.now += retention * 100 },
		"by operator": func(b *bounded, id ids.Invocation) { b.apply(&machine.Purge{Target: id}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBounded(t, feature.Level3)
			id := ids.NewInvocation(0, [16]byte{1})
			b.apply(&machine.Invoke{ID: id, Target: machine.Target{Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil), Retention: machine.Retention{Completion: retention, Journal: retention}})
			inv, err := b.st.Invocation(id)
			require.NoError(t, err)
			b.apply(&machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{
				machinetest.Sleep(1, 1<<40), machinetest.Sleep(1, 1<<40), machinetest.Output(journal.Result{}), machinetest.End(),
			}})
			inv, err = b.st.Invocation(id)
			require.NoError(t, err)
			require.EqualValues(t, 1, inv.Sleeps)
			b.level = feature.Level4
			purge(b, id)
			var due []machine.Timer
			for _, timer := range b.st.Timers() {
				if timer.At <= b.now {
					due = append(due, timer)
				}
			}
			b.apply(&machine.FireTimers{Timers: due})
			inv, err = b.st.Invocation(id)
			require.NoError(t, err)
			require.Nil(t, inv)
		})
	}
}
