package raftgroup

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestAFollowerThatIsAddedAgainMustRespondAgain covers a response to a request from before the
// removal: the follower may have removed its data since.
func TestAFollowerThatIsAddedAgainMustRespondAgain(t *testing.T) {
	const id = raft.ServerID("a")
	f := newFollowers()
	now := time.Second
	f.elapsed = func() time.Duration { now++; return now }
	before := f.elapsed()
	f.note(id, 5, 100, before)
	require.EqualValues(t, 100, f.of(id, 5).match)

	f.forget(id, 5)
	f.note(id, 5, 100, before)
	require.Zero(t, f.of(id, 5).match)
	require.Zero(t, f.of(id, 5).contact)

	f.note(id, 5, 101, f.elapsed())
	require.EqualValues(t, 101, f.of(id, 5).match)
	f.forget(id, 4)
	require.EqualValues(t, 101, f.of(id, 5).match, "an earlier leadership")
	f.forget(id, 6)
	require.Zero(t, f.of(id, 6).match)
	require.Zero(t, f.of(id, 5).match)
}

// TestConfirmationsAgeWhileTheMachineIsSuspended requires that a leader that was suspended relies on
// no lease: another one may have been elected meanwhile.
func TestConfirmationsAgeWhileTheMachineIsSuspended(t *testing.T) {
	const id = raft.ServerID("a")
	f := newFollowers()
	now := time.Second
	f.elapsed = func() time.Duration { return now }
	require.False(t, f.confirmedWithin(id, 5, time.Hour), "it has not responded")
	f.note(id, 5, 0, now)
	now += time.Second
	require.True(t, f.confirmedWithin(id, 5, time.Second))
	require.False(t, f.confirmedWithin(id, 4, time.Second))
	now += time.Hour // suspended: Go's clock stands still
	require.False(t, f.confirmedWithin(id, 5, time.Second))
}
