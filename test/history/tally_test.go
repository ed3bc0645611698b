package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTallySettles(t *testing.T) {
	for _, c := range []struct {
		name    string
		tally   Tally
		value   int64
		correct bool
	}{
		{"nothing unknown", Tally{Acked: 100}, 100, true},
		{"unknown lost", Tally{Acked: 100, Unknown: []int64{7, 30}}, 100, true},
		{"unknown took effect", Tally{Acked: 100, Unknown: []int64{7, 30}}, 137, true},
		{"one of two took effect", Tally{Acked: 100, Unknown: []int64{7, 30}}, 130, true},
		{"acknowledged lost", Tally{Acked: 100}, 60, false},
		{"acknowledged twice", Tally{Acked: 100}, 140, false},
		{"unknown twice", Tally{Acked: 100, Unknown: []int64{7}}, 114, false},
		{"too much to tell", Tally{Acked: 0, Unknown: make([]int64, maxUnknown+1)}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.tally.Settle(c.value)
			if !c.correct {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Tally{Acked: c.value}, c.tally, "a settled tally starts afresh")
		})
	}
}
