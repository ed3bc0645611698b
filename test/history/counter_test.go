package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCounterModelReconcile(t *testing.T) {
	for _, c := range []struct {
		name    string
		model   CounterModel
		value   int64
		correct bool
	}{
		{"nothing unknown", CounterModel{Acked: 100}, 100, true},
		{"unknown lost", CounterModel{Acked: 100, Unknown: []int64{7, 30}}, 100, true},
		{"unknown took effect", CounterModel{Acked: 100, Unknown: []int64{7, 30}}, 137, true},
		{"one of two took effect", CounterModel{Acked: 100, Unknown: []int64{7, 30}}, 130, true},
		{"acknowledged lost", CounterModel{Acked: 100}, 60, false},
		{"acknowledged twice", CounterModel{Acked: 100}, 140, false},
		{"unknown twice", CounterModel{Acked: 100, Unknown: []int64{7}}, 114, false},
		{"too many unknown", CounterModel{Acked: 0, Unknown: make([]int64, maxUnknown+1)}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.model.Reconcile(c.value)
			if !c.correct {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, CounterModel{Acked: c.value}, c.model, "a reconciled model starts from the value")
		})
	}
}
