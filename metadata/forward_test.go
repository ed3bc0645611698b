package metadata

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
)

func TestEveryNodeAcceptsChangesAndSeesItsOwn(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 4)
	c.awaitVoters(3, 0, nodes...)
	for _, n := range nodes {
		got, err := n.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{
			URI: "http://" + n.self.Name + "/", Services: []*Service{{Name: "Greeter"}},
		}})
		require.NoError(t, err)
		require.Equal(t, Created, got.Change)
		require.Equal(t, got.Deployment, n.Schemas().Deployments[got.Deployment.ID], "%s sees what it changed", n.self.Name)
		require.Equal(t, got.Deployment.ID, n.Schemas().Services["Greeter"].Deployment)

		service, err := n.ModifyService(t.Context(), "Greeter", Options{Public: ptr(false)})
		require.NoError(t, err)
		require.Equal(t, service, n.Schemas().Services["Greeter"])

		_, err = n.ModifyService(t.Context(), "Greeter", Options{WorkflowRetention: ptr(time.Hour)})
		require.ErrorAs(t, err, new(*InvalidError))
		require.Equal(t, &NotFoundError{Deployment: "dp_1x"}, n.DeleteDeployment(t.Context(), "dp_1x"))
		_, err = n.RegisterNode(t.Context(), Node{Name: "n1", Incarnation: "a", ID: 77})
		require.ErrorIs(t, err, ErrNodeConflict)
		_, err = n.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{
			ID: got.Deployment.ID, URI: "http://elsewhere/", Services: []*Service{{Name: "Greeter"}},
		}})
		code, _ := errcode.Of(err)
		require.Equal(t, errcode.META0004, code)
	}
}

// registerMany registers on a node until ctx ends, and checks each result.
func registerMany(ctx context.Context, t *testing.T, n *testNode) (acknowledged int) {
	for i := 0; ctx.Err() == nil; i++ {
		got, err := n.RegisterDeployment(t.Context(), Registration{Deployment: &Deployment{
			URI: fmt.Sprintf("http://%s/%d/", n.self.Name, i), Services: []*Service{{Name: "Greeter"}},
		}})
		if err != nil {
			t.Errorf("%s: %v", n.self.Name, err)
			return acknowledged
		}
		if got.Change != Created {
			t.Errorf("%s: registration %d was applied twice", n.self.Name, i)
		}
		if n.Schemas().Deployments[got.Deployment.ID] == nil {
			t.Errorf("%s: registration %d was acknowledged before it was visible", n.self.Name, i)
		}
		acknowledged++
	}
	return acknowledged
}

// requireEachOnce checks that each acknowledged registration was applied once, on all
// replicas.
func requireEachOnce(t *testing.T, acknowledged int, nodes ...*testNode) {
	for _, n := range nodes {
		require.Eventually(t, func() bool { return len(n.Schemas().Deployments) == acknowledged }, time.Minute, time.Millisecond)
		var revisions []uint32
		for _, d := range n.Schemas().Deployments {
			revisions = append(revisions, d.Services[0].Revision)
		}
		slices.Sort(revisions)
		for i, revision := range revisions {
			require.EqualValues(t, i+1, revision)
		}
	}
}

func TestChangesSucceedWhileLeadersChangeAndResponsesAreLost(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 4)
	c.awaitVoters(3, 0, nodes...)
	c.mu.Lock()
	c.lost = func() bool { return rand.IntN(4) == 0 }
	c.mu.Unlock()

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	counts := make([]int, len(nodes))
	for i, n := range nodes {
		wg.Go(func() { counts[i] = registerMany(ctx, t, n) })
	}
	for range 6 {
		leader, _ := c.leader(nodes...)
		before := leader.AppliedIndex()
		require.Eventually(t, func() bool { return leader.AppliedIndex() > before+10 }, time.Minute, time.Millisecond)
		if err := leader.Group().TransferLeadership(t.Context(), ""); err != nil {
			t.Log(err) // it may have lost leadership on its own
		}
	}
	cancel()
	wg.Wait()
	requireEachOnce(t, counts[0]+counts[1]+counts[2], nodes...)
}

func TestChangesSucceedWhenTheLeaderIsKilled(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 4)
	c.awaitVoters(3, 0, nodes...)
	leader, _ := c.leader(nodes...)
	var rest []*testNode
	for _, n := range nodes {
		if n != leader {
			rest = append(rest, n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	counts := make([]int, len(rest))
	for i, n := range rest {
		wg.Go(func() { counts[i] = registerMany(ctx, t, n) })
	}
	before := rest[0].AppliedIndex()
	require.Eventually(t, func() bool { return rest[0].AppliedIndex() > before+20 }, time.Minute, time.Millisecond)
	leader.kill()
	next, _ := c.leader(rest...)
	before = next.AppliedIndex()
	require.Eventually(t, func() bool { return next.AppliedIndex() > before+20 }, time.Minute, time.Millisecond)
	cancel()
	wg.Wait()
	requireEachOnce(t, counts[0]+counts[1], rest...)

	// It restarts with its data, creates no separate group, and catches up.
	back := c.start(leader.self.Name, "a", string(leader.address), true)
	requireEachOnce(t, counts[0]+counts[1], back)
	_, err := back.RegisterNode(t.Context(), back.self)
	require.NoError(t, err)
}

func TestAnUnresponsiveLeaderIsAwaitedOnlyWhileItLeads(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 1)
	c.awaitVoters(3, 0, nodes...)
	leader, follower := c.leader(nodes...)
	c.mu.Lock()
	c.hung = leader.address
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), attemptTimeout/2)
	defer cancel()
	changed := make(chan error, 1)
	go func() {
		_, err := follower.DrainNode(ctx, 1, true)
		changed <- err
	}()
	require.NoError(t, leader.Group().TransferLeadership(t.Context(), ""))
	require.NoError(t, <-changed)
}

func TestChangesFailInTimeWithoutAMajority(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(3, 1)
	c.awaitVoters(3, 0, nodes...)
	_, follower := c.leader(nodes...)
	for _, n := range nodes {
		if n != follower {
			n.kill()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := follower.DrainNode(ctx, 1, true)
	require.True(t, errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnknownOutcome), "%v", err)
	require.Len(t, follower.Nodes(), 3, "reads still work")
}

func TestForwardedEntriesAreCheckedBeforeTheyAreProposed(t *testing.T) {
	c := newTestCluster(t)
	nodes := c.startAll(2, 1)
	c.awaitVoters(2, 0, nodes...)
	leader, follower := c.leader(nodes...)
	good, err := encodeEntry(header{at: goldenTime, request: "r"}, &drainNode{id: 9})
	require.NoError(t, err)
	anonymous, err := encodeEntry(header{at: goldenTime}, &drainNode{id: 9})
	require.NoError(t, err)

	_, _, err = leader.HandleForward(t.Context(), []byte{0xff})
	require.ErrorContains(t, err, "decode metadata entry")
	_, _, err = leader.HandleForward(t.Context(), anonymous)
	require.ErrorContains(t, err, "no request ID")
	_, _, err = follower.HandleForward(t.Context(), good)
	require.ErrorIs(t, err, ErrNotLeader)
	result, index, err := leader.HandleForward(t.Context(), good)
	require.NoError(t, err)
	require.NotZero(t, index)
	o, err := decodeOutcome(result)
	require.NoError(t, err)
	require.Equal(t, &NotFoundError{Node: 9}, o.rejection)
	require.NoError(t, leader.Group().Err())
}

func TestAJoiningReplicaAcceptsNoChanges(t *testing.T) {
	c := newTestCluster(t)
	n := c.start("n9", "a", "", false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := n.Provision(ctx, Cluster{Name: "x", Partitions: 1})
	require.ErrorIs(t, err, ErrUnavailable)
	require.Empty(t, n.Group().Servers())
	_, err = Open(Config{Dir: t.TempDir()})
	require.ErrorContains(t, err, "first voters or joins")
}

func TestALateReplicaReceivesASnapshot(t *testing.T) {
	c := newTestCluster(t)
	first := c.startAll(1, 4)[0]
	var wg sync.WaitGroup
	for worker := range 32 { // concurrent changes are synced together
		wg.Go(func() {
			for i := range 2 * trailingLogs / 32 {
				if _, err := first.RegisterNode(t.Context(), Node{Name: fmt.Sprint("x", worker), Incarnation: "a", AdminAddress: fmt.Sprint(i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return first.Group().Stats().FirstIndex > 100 }, time.Minute, time.Millisecond)

	late := c.start("late", "a", "", false)
	got, err := first.AddNode(t.Context(), late.self, false)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		l, _ := late.Layout()
		n, known := l.Node(got.ID)
		return known && n == got
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return late.Group().Stats().SnapshotIndex > 100 }, time.Minute, time.Millisecond, "it has older entries")
	_, err = late.DrainNode(t.Context(), got.ID, true)
	require.NoError(t, err)
	n, _ := late.source.current().node("late")
	require.True(t, n.Draining, "its change is visible")
}

// TestAnUnknownOutcomeRemainsUnknown loses the response to a change, after which there is no
// leader: the last attempt had no effect, but the first one had.
func TestAnUnknownOutcomeRemainsUnknown(t *testing.T) {
	err := changeWithoutResponse(t)
	for err == nil { // the entry was replicated to the follower, which then knows the outcome
		err = changeWithoutResponse(t)
	}
	require.ErrorIs(t, err, ErrUnknownOutcome)
	require.NotErrorIs(t, err, ErrUnavailable)
	require.NotErrorIs(t, err, ErrNotLeader)
}

// changeWithoutResponse requests a change at a follower. The other nodes are killed once the
// leader has executed it, before they respond.
func changeWithoutResponse(t *testing.T) error {
	c := newTestCluster(t)
	nodes := c.startAll(3, 4)
	c.awaitVoters(3, 0, nodes...)
	_, follower := c.leader(nodes...)
	lost := make(chan struct{}, 1000)
	c.mu.Lock()
	c.lost = func() bool { lost <- struct{}{}; return true }
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := follower.RegisterDeployment(ctx, Registration{Deployment: &Deployment{URI: "http://a/", Services: []*Service{{Name: "Greeter"}}}})
		done <- err
	}()
	<-lost
	for _, n := range nodes {
		if n != follower {
			n.kill()
		}
	}
	require.Eventually(t, func() bool { return follower.Group().Leader().ID == "" }, time.Minute, time.Millisecond)
	_, err := follower.RegisterDeployment(limited(t, leaderPollInterval), Registration{Deployment: &Deployment{URI: "http://b/", Services: []*Service{{Name: "Greeter"}}}})
	require.ErrorIs(t, err, ErrUnavailable)
	cancel()
	return <-done
}

// limited returns a context that ends after d.
func limited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
