package raftgroup

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
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

// hangingStorage takes nothing while hung is locked.
type hangingStorage struct {
	Storage
	hung sync.RWMutex
}

func (s *hangingStorage) StoreLogs(logs []*raft.Log) error {
	s.hung.RLock()
	defer s.hung.RUnlock()
	return s.Storage.StoreLogs(logs)
}

// The leader's Raft waits for the disk, but its heartbeats go on: nobody else would
// ever stand for election. The election time-outs are much longer than the test.
func TestLeaderWithAHungDiskIsReplaced(t *testing.T) {
	dog := NewWatchdog(WatchdogConfig{
		Slow: 100 * time.Millisecond, Tick: 10 * time.Millisecond, Hung: time.Hour, Logger: slog.New(slog.DiscardHandler),
	})
	defer dog.Close()
	disks := map[raft.ServerID]*hangingStorage{}
	c := newThreeWith(t, 1000, func(cfg *Config) {
		disks[cfg.LocalID] = &hangingStorage{Storage: cfg.Storage}
		cfg.Storage, cfg.Watchdog = disks[cfg.LocalID], dog
		cfg.Profile.HeartbeatTimeout, cfg.Profile.ElectionTimeout = 2500*time.Millisecond, 2500*time.Millisecond
	})
	old := c.leader()
	proposeMany(t, c.groups[old], 1, 10)
	disk := disks[c.groups[old].cfg.LocalID]
	disk.hung.Lock()
	begin := time.Now()
	data, err := sealJournal([][]byte{[]byte("lost or not")})
	require.NoError(t, err)
	hanging := c.groups[old].Propose(data)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(c.groups[:], func(g *Group) bool { return g != c.groups[old] && g.IsLeader() })
	}, 20*time.Second, time.Millisecond)
	took := time.Since(begin)
	disk.hung.Unlock()
	_, _ = hanging.Wait(t.Context()) // either is right
	require.Less(t, took, 2*time.Second)
	require.NotEqual(t, old, c.leader())
}
