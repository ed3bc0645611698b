package replicas

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"platform/internal/raftgroup"
)

// fakeLeaderView is a replica whose leader the test sets.
type fakeLeaderView struct {
	mu      sync.Mutex // covers the fields below
	leader  string
	changed chan struct{}
	asked   chan struct{} // one value for each look at the leader
}

func (f *fakeLeaderView) ID() uint32 { return 7 }

func (f *fakeLeaderView) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fakeLeaderView) Leader() raftgroup.Leader {
	f.asked <- struct{}{}
	f.mu.Lock()
	defer f.mu.Unlock()
	return raftgroup.Leader{ID: raft.ServerID(f.leader)}
}

func (f *fakeLeaderView) set(leader string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = leader
	close(f.changed)
	f.changed = make(chan struct{})
}

func TestReplicaIsAbandonedOnceItKnowsNoLeader(t *testing.T) {
	p := &fakeLeaderView{leader: "n1/a", changed: make(chan struct{}), asked: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- awaitNoLeader(t.Context(), p) }()
	<-p.asked
	p.set("n2/b")
	<-p.asked
	require.Empty(t, done)
	p.set("")
	<-p.asked
	require.NoError(t, <-done)

	p.set("n2/b")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- awaitNoLeader(ctx, p) }()
	<-p.asked
	cancel()
	require.EqualError(t, <-done, "partition 7 has a leader, n2/b")
}
