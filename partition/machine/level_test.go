package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

func TestTheLevelOfAPartitionNeverDecreases(t *testing.T) {
	st := machinetest.New()
	m := machine.New(machine.Shards{Count: 1})
	apply := func(level feature.Level, epoch uint64) machine.Code {
		o, _, err := m.Apply(st, machine.Header{Level: level, Epoch: epoch}, &machine.Lead{Epoch: epoch}, nil)
		require.NoError(t, err)
		return o.Code
	}
	require.Equal(t, machine.OK, apply(feature.Level1, 1))
	require.Zero(t, st.Meta().Level, "the first release cannot read the field")
	require.Equal(t, machine.OK, apply(feature.Level2, 2))
	require.Equal(t, feature.Level2, st.Meta().Level)
	require.Equal(t, machine.OK, apply(feature.Level1, 3))
	require.Equal(t, feature.Level2, st.Meta().Level)
	require.Equal(t, machine.Stale, apply(feature.Newest+1, 3))
	require.Equal(t, feature.Level2, st.Meta().Level, "a refused entry changes nothing")
}
