package machine_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// TestLargeResultsAreStoredOnce checks which records refer to the journal for their result, and
// that the result remains when the journal is deleted.
func TestLargeResultsAreStoredOnce(t *testing.T) {
	large, id := bytes.Repeat([]byte("v"), 4<<10), ids.NewInvocation(0, [16]byte{1})
	for name, test := range map[string]struct {
		level   feature.Level
		journal int64 // retention
		result  journal.Result
		shared  bool
	}{
		"large":                  {feature.Level4, 1000, journal.Result{Value: large}, true},
		"small":                  {feature.Level4, 1000, journal.Result{Value: large[1:]}, false},
		"of an earlier level":    {feature.Level3, 1000, journal.Result{Value: large}, false},
		"without a journal":      {feature.Level4, 0, journal.Result{Value: large}, false},
		"failure":                {feature.Level4, 1000, journal.Result{Failure: &journal.Failure{Code: 400, Message: string(large)}}, false},
		"of a journal to delete": {feature.Level4, 1, journal.Result{Value: large}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBounded(t, test.level)
			b.apply(&machine.Invoke{ID: id, Target: machine.Target{Service: "S", Handler: "h"}, Input: journal.NewInput(nil, nil), Retention: machine.Retention{Completion: 1 << 40, Journal: test.journal}})
			inv, err := b.st.Invocation(id)
			require.NoError(t, err)
			b.apply(&machine.Progress{ID: id, Attempt: inv.Attempt, Steps: []machine.Step{machinetest.Output(test.result), machinetest.End()}})
			requireResult(t, b, id, test.result, test.shared)
			b.now += 1000
			b.settle()
			requireResult(t, b, id, test.result, false)
		})
	}
}

func requireResult(t *testing.T, b *bounded, id ids.Invocation, want journal.Result, shared bool) {
	t.Helper()
	inv, err := b.st.Invocation(id)
	require.NoError(t, err)
	require.Equal(t, want, *inv.Result)
	require.Equal(t, shared, inv.ResultInJournal)
	require.Empty(t, b.st.Broken(machinetest.Names{}), fmt.Sprint("of ", id))
}
