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
	var f followers
	before := time.Now()
	f.note(id, 5, 100, before)
	require.EqualValues(t, 100, f.of(id, 5).match)

	f.forget(id, 5)
	f.note(id, 5, 100, before)
	require.Zero(t, f.of(id, 5).match)
	require.Zero(t, f.of(id, 5).contact)

	f.note(id, 5, 101, time.Now())
	require.EqualValues(t, 101, f.of(id, 5).match)
	f.forget(id, 4)
	require.EqualValues(t, 101, f.of(id, 5).match, "an earlier leadership")
	f.forget(id, 6)
	require.Zero(t, f.of(id, 6).match)
	require.Zero(t, f.of(id, 5).match)
}
