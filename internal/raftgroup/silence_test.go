package raftgroup

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALeaderThatCouldNotWriteDoesNotLeadAgain(t *testing.T) {
	const step = time.Second
	var s silence
	require.False(t, s.ledIn(0, step))
	s.lead(3)
	require.True(t, s.ledIn(3, step))
	require.False(t, s.ledIn(4, step))
	s.writeFailed(3)
	require.False(t, s.ledIn(3, step))
	s.lead(3)
	require.False(t, s.ledIn(3, step), "it was still the leader when the next check came")
	s.lead(5)
	require.True(t, s.ledIn(5, step))
}
