package partition

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/codec"
	"platform/partition/machine"
)

// sealedAt is the feature level at which the leader writes.
func (c *replicaSet) sealedAt(leader int) feature.Level {
	c.t.Helper()
	l, err := c.hosts[leader].p.leader()
	require.NoError(c.t, err)
	command, err := codec.EncodeCommand(l.level(), &machine.Acknowledge{To: 1, Upto: 1})
	require.NoError(c.t, err)
	data, err := l.seal([][]byte{command})
	require.NoError(c.t, err)
	h, _, err := codec.Decode(data)
	require.NoError(c.t, err)
	return h.Level
}

func TestALeaderThatLearnsTheLevelLateContinuesAtTheLevelOfTheLog(t *testing.T) {
	c := newReplicaSet(t, nil)
	leader := c.leader()
	require.Equal(t, feature.Level1, c.sealedAt(leader))
	require.NoError(t, c.commit(&machine.Acknowledge{To: 1, Upto: 1}))
	meta, err := c.hosts[leader].p.previous()
	require.NoError(t, err)
	require.Zero(t, meta.Level)

	c.hosts[leader].level.Store(uint32(feature.Level2))
	require.Equal(t, feature.Level2, c.sealedAt(leader), "immediately, without another election")
	require.NoError(t, c.commit(&machine.Acknowledge{To: 1, Upto: 1}))
	c.close(leader)
	require.Equal(t, feature.Level2, c.sealedAt(c.leader(leader)))
}

// Baggage cannot be stored while older servers are part of the cluster. It is left out rather than
// the request refused.
func TestBaggageIsStoredOnceTheLevelAllowsIt(t *testing.T) {
	var level atomic.Uint32
	level.Store(uint32(feature.Level3))
	c := newTestNodeWith(t, 1, func(cfg *Config) {
		cfg.Level = func() feature.Level { return feature.Level(level.Load()) }
	})
	p := c.partitions[0]
	require.NoError(t, p.WaitLeading(t.Context()))
	stored := func() machine.Trace {
		inv := request("Unknown", "handler", `1`)
		inv.Trace = machine.Trace{Parent: "parent", Baggage: "user=1"}
		_, err := p.Invoke(t.Context(), inv)
		require.NoError(t, err)
		found, err := p.Find(t.Context(), inv.ID)
		require.NoError(t, err)
		return found.Trace
	}
	require.Equal(t, machine.Trace{Parent: "parent"}, stored())
	level.Store(uint32(feature.Level4))
	require.Equal(t, machine.Trace{Parent: "parent", Baggage: "user=1"}, stored())
}
