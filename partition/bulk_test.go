package partition

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition/machine"
)

// A command is taken once: by the proposer, or by the end of the request.
func TestAWaitingCommandIsReleasedWhenItsRequestEnds(t *testing.T) {
	inv := &machine.Invoke{Input: make([]byte, 1)}
	w := &waitingCommand{c: inv}
	ctx, cancel := context.WithCancel(t.Context())
	released := make(chan machine.Command)
	context.AfterFunc(ctx, func() { released <- w.take() })
	cancel()
	require.Equal(t, machine.Command(inv), <-released)
	require.Nil(t, w.take())
}

// Progress follows the bulk progress of its invocation, and only that.
func TestProgressDoesNotOvertakeBulkProgress(t *testing.T) {
	l := new(leadership)
	id, other := ids.NewInvocation(1, [16]byte{1}), ids.NewInvocation(1, [16]byte{2})
	require.True(t, l.isBulk(&machine.Progress{ID: id}, bulkCommand))
	require.False(t, l.isBulk(&machine.Progress{ID: id}, 1))
	l.bulkProgress.add(id, 1)
	l.bulkProgress.add(id, 1)
	require.True(t, l.isBulk(&machine.Progress{ID: id}, 1))
	require.False(t, l.isBulk(&machine.Progress{ID: other}, 1))
	l.bulkProgress.add(id, -1)
	require.True(t, l.isBulk(&machine.Progress{ID: id}, 1))
	l.bulkProgress.add(id, -1)
	require.False(t, l.isBulk(&machine.Progress{ID: id}, 1))
	require.Empty(t, l.bulkProgress.byID)
	require.False(t, l.isBulk(&machine.Kill{Target: id}, bulkCommand))
}
