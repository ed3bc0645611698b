package machine_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// TestSignalsOfOneInvocationAreBounded sends signals with invented numbers and names until the
// target refuses them.
func TestSignalsOfOneInvocationAreBounded(t *testing.T) {
	const most = machine.MaxSignalBytes / machine.MinSignalBytes
	number := func(n int) journal.NotificationID { return journal.NumberedSignal(1<<32 - 1 - uint32(n)) }
	name := func(n int) journal.NotificationID { return journal.NamedSignal(strconv.Itoa(n)) }
	for kind, id := range map[string]func(int) journal.NotificationID{"awakeables": number, "named": name} {
		t.Run(kind, func(t *testing.T) {
			b := newBounded(t, feature.Level4)
			target := ids.NewInvocation(1, [16]byte{1})
			b.invoke(target, machine.Target{Service: "S", Handler: "h"}, journal.NewInput(nil, nil))
			send := func(id journal.NotificationID) machine.Code {
				o, _, err := b.m.Apply(b.st, machine.Header{Epoch: 1, Time: b.now, Level: b.level}, &machine.Signal{Target: target, ID: id}, nil)
				require.NoError(t, err)
				return o.Code
			}
			for n := range most {
				require.Equal(t, machine.OK, send(id(n)))
			}
			entries := b.st.appended
			require.Equal(t, machine.SignalsFull, send(id(most)))
			require.Equal(t, entries, b.st.appended)
			again := machine.OK // the first result of an awakeable is kept
			if kind == "named" {
				again = machine.SignalsFull
			}
			require.Equal(t, again, send(id(0)))
			require.Equal(t, entries, b.st.appended)

			cancels := 0
			for send(journal.NumberedSignal(journal.CancelSignal)) == machine.OK {
				cancels++
			}
			require.Equal(t, 256, cancels)
			require.Empty(t, b.st.Broken(machinetest.Names{}))

			b.apply(&machine.Deliver{From: 1, FirstSeq: 1, Messages: []machine.Message{&machine.Signal{Target: target, ID: id(most)}}})
			inv, err := b.st.Invocation(target)
			require.NoError(t, err)
			require.EqualValues(t, 1+most+cancels, inv.Length, "signals of handlers are dropped")
			b.apply(&machine.Kill{Target: target})
			b.settle()
		})
	}
}
