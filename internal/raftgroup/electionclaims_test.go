package raftgroup

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Two survivors query each other whether the leader is silent, and both confirm it. If both started an election, each would
// have its own vote only, and the next one would follow after the election timeout.
func TestOneOfTwoSurvivorsStartsAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		time.Sleep(time.Hour) // the zero time is long ago
		var first, second electionClaims
		require.True(t, first.agree(false, step))
		require.True(t, second.agree(false, step))
		require.False(t, second.claim(false, step))
		require.True(t, first.claim(true, step))
		time.Sleep(step)
		require.True(t, second.claim(false, step), "the first one has failed")
	})
}

// A survivor that has started an election agrees to another one's only after a while, when its own has failed.
func TestASurvivorThatStandsForElectionAgreesToNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		time.Sleep(time.Hour) // the zero time is long ago
		var second electionClaims
		require.True(t, second.claim(false, step))
		require.False(t, second.agree(false, step))
		time.Sleep(step)
		require.True(t, second.agree(false, step))
	})
}

// The former leader has the best log: also the first one in the order leaves the election to it.
func TestSurvivorsYieldToTheFormerLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		time.Sleep(time.Hour) // the zero time is long ago
		var first electionClaims
		require.True(t, first.agree(true, step))
		require.False(t, first.claim(true, step))
		time.Sleep(step)
		require.True(t, first.claim(true, step), "the former leader has failed")
		require.False(t, first.agree(true, step), "it has started an election")
	})
}

// Two candidates grant each other a pre-vote before either has started its election.
func TestOneOfTwoCandidatesStartsAnElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		time.Sleep(time.Hour) // the zero time is long ago
		var first, second electionClaims
		require.True(t, first.preVote(false, step))
		require.True(t, second.preVote(true, step))
		require.False(t, second.claimGranted(false, step))
		require.True(t, first.claimGranted(false, step))
		require.False(t, first.preVote(false, step), "its election has started")
		require.False(t, first.agree(false, step))
		time.Sleep(step)
		require.True(t, first.preVote(false, step), "it has not been elected")
		require.True(t, second.claimGranted(false, step))
	})
}

func TestACandidateYieldsToAnElectionThatItAgreedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		time.Sleep(time.Hour) // the zero time is long ago
		var c electionClaims
		require.True(t, c.agree(false, step))
		require.False(t, c.claimGranted(false, step))
		time.Sleep(step)
		require.True(t, c.claimGranted(false, step))
		require.False(t, c.agree(true, step))
		c = electionClaims{}
		c.standing()
		require.False(t, c.preVote(true, step))
	})
}

// A candidate is not elected since the leader is back. Its next election counts as well.
func TestEachElectionIsClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 100 * time.Millisecond
		time.Sleep(time.Hour) // the zero time is long ago
		var c electionClaims
		require.True(t, c.claimGranted(false, step))
		time.Sleep(time.Minute)
		require.True(t, c.preVote(false, step))
		require.True(t, c.claimGranted(false, step))
		require.False(t, c.preVote(false, step))
	})
}
