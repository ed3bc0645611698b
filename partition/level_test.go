package partition

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/partition/codec"
	"platform/partition/machine"
)

// sealedAt is the feature level at which the leader writes.
func (c *trio) sealedAt(leader int) feature.Level {
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
	c := newTrio(t, nil)
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
