package replicas

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCheckpointsAreDueByCommandsBytesAndAge(t *testing.T) {
	start := time.Unix(1000, 0)
	last := progress{commands: 100, bytes: 1000, at: start}
	now := func(commands, bytes uint64, after time.Duration) progress {
		return progress{last.commands + commands, last.bytes + bytes, start.Add(after)}
	}
	require.False(t, now(checkpointCommands-1, checkpointBytes-1, checkpointAge-1).due(last))
	require.True(t, now(checkpointCommands, 1, time.Second).due(last))
	require.True(t, now(1, checkpointBytes, time.Second).due(last))
	require.True(t, now(1, 1, checkpointAge).due(last))
	require.False(t, now(0, 0, 2*checkpointAge).due(last), "nothing was applied")
}
