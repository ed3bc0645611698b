package raftgroup

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTurnToStandForElection(t *testing.T) {
	const wait, grace = 100 * time.Millisecond, 300 * time.Millisecond
	at := func(d time.Duration, granted bool) func(votes) {
		return func(v votes) {
			time.Sleep(d)
			v.note(granted)
		}
	}
	for _, c := range []struct {
		name string
		note func(votes)
		turn time.Duration
	}{
		{"nobody else stands", func(votes) {}, wait},
		{"refused another", at(10*time.Millisecond, false), 10 * time.Millisecond},
		{"voted for another", at(90*time.Millisecond, true), 90*time.Millisecond + grace},
		{"voted for another and refused a third", func(v votes) {
			at(50*time.Millisecond, true)(v)
			at(150*time.Millisecond, false)(v)
		}, 200 * time.Millisecond},
		{"voted too late", at(150*time.Millisecond, true), wait},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVotes()
				v.note(true) // of an earlier election
				v.note(false)
				v.forgetVotes()
				var noting sync.WaitGroup
				defer noting.Wait()
				noting.Go(func() { c.note(v) })
				begin := time.Now()
				require.True(t, v.awaitTurn(t.Context(), wait, grace))
				require.Equal(t, c.turn, time.Since(begin))
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, newVotes().awaitTurn(ended, wait, grace))
}
