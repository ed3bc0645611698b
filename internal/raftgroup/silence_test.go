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
		for _, secondIsFaster := range []bool{false, true} {
			var first, second silence
			if secondIsFaster {
				require.True(t, second.claim(false, step))
				require.False(t, second.agree(step), "to the first one")
				time.Sleep(step)
				require.True(t, second.agree(step), "its election has failed")
				continue
			}
			require.True(t, first.agree(step))
			require.True(t, second.agree(step))
			require.False(t, second.claim(false, step))
			require.True(t, first.claim(true, step))
			time.Sleep(step)
			require.True(t, second.claim(false, step), "the first one has failed")
		}
	})
}
