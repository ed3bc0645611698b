package backend

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/cluster"
	"platform/internal/subscription"
	"platform/metadata"
	nodepb "platform/proto/node"
)

type fakeStreamNodes struct {
	nodes []cluster.NodeStreams
	mu    sync.Mutex // covers asked
	asked []string
	err   error

	letters map[string][]subscription.DeadLetter // by node
	leads   map[string][]uint32                  // partitions by node
}

func (f *fakeStreamNodes) Streams(context.Context, string, bool) []cluster.NodeStreams {
	return f.nodes
}

func (f *fakeStreamNodes) StreamRecord(_ context.Context, node metadata.Node, id subscription.RecordID, action nodepb.StreamRecordAction) (subscription.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, node.Name+" "+action.String())
	return subscription.Record{Offset: id.Offset}, f.err
}

func (f *fakeStreamNodes) All() (all []metadata.Node) {
	for _, n := range f.nodes {
		all = append(all, n.Node)
	}
	return all
}

func (f *fakeStreamNodes) DeadLetters(_ context.Context, node metadata.Node, _ string, _ *subscription.RecordID, _ int) (subscription.DeadLetterPage, error) {
	return subscription.DeadLetterPage{Letters: f.letters[node.Name], Partitions: f.leads[node.Name]}, f.err
}

func (f *fakeStreamNodes) Partitions() []metadata.Partition {
	return []metadata.Partition{{ID: 0}, {ID: 1}}
}

func (f *fakeStreamNodes) DeadLetter(_ context.Context, node metadata.Node, id subscription.RecordID) (subscription.DeadLetter, error) {
	for _, l := range f.letters[node.Name] {
		if l.Offset == id.Offset {
			return l, nil
		}
	}
	return subscription.DeadLetter{}, subscription.ErrNotRead
}

func partitionOf(state subscription.State, inFlight uint32) []subscription.Status {
	return []subscription.Status{{Subscription: "sub_1", Partitions: []subscription.PartitionStatus{{Topic: "t", Partition: 3, State: state, InFlight: inFlight}}}}
}

func TestRecordsAreChangedWhereTheyAreRead(t *testing.T) {
	nodes := &fakeStreamNodes{nodes: []cluster.NodeStreams{{Node: metadata.Node{Name: "n1"}}, {Node: metadata.Node{Name: "n2"}, Statuses: partitionOf(subscription.Blocked, 0)}}}
	s := &Streams{Nodes: nodes}
	id := subscription.RecordID{Subscription: "sub_1", Topic: "t", Partition: 3, Offset: 9}
	record, err := s.Record(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 9, record.Offset)
	require.NoError(t, s.RetryRecord(t.Context(), id))
	require.NoError(t, s.SkipRecord(t.Context(), id))
	require.Equal(t, []string{"n2 READ", "n2 RETRY", "n2 SKIP"}, nodes.asked)
	nodes.err = subscription.ErrNotBlocked
	require.ErrorIs(t, s.SkipRecord(t.Context(), id), subscription.ErrNotBlocked)
	id.Partition = 4
	nodes.asked, nodes.err = nil, subscription.ErrNoRecord
	_, err = s.Record(t.Context(), id)
	require.ErrorIs(t, err, subscription.ErrNoRecord)
	require.ElementsMatch(t, []string{"n1 READ", "n2 READ"}, nodes.asked, "any of them may lead the partition that would own it")
}

func letterAt(offset int64) subscription.DeadLetter {
	return subscription.DeadLetter{Record: subscription.Record{Topic: "t", Offset: offset}}
}

func TestDeadLettersOfAllNodes(t *testing.T) {
	nodes := &fakeStreamNodes{
		nodes:   []cluster.NodeStreams{{Node: metadata.Node{Name: "n1"}}, {Node: metadata.Node{Name: "n2"}}},
		letters: map[string][]subscription.DeadLetter{"n1": {letterAt(1), letterAt(5)}, "n2": {letterAt(3), letterAt(5)}},
		leads:   map[string][]uint32{"n1": {0}, "n2": {1}},
	}
	s := &Streams{Nodes: nodes}
	letters, silent := s.DeadLetters(t.Context(), "sub_1", nil, 10)
	require.Empty(t, silent)
	require.Equal(t, []subscription.DeadLetter{letterAt(1), letterAt(3), letterAt(5)}, letters)
	letters, _ = s.DeadLetters(t.Context(), "sub_1", nil, 2)
	require.Equal(t, []subscription.DeadLetter{letterAt(1), letterAt(3)}, letters)
	letter, err := s.DeadLetter(t.Context(), subscription.RecordID{Subscription: "sub_1", Topic: "t", Offset: 3})
	require.NoError(t, err)
	require.Equal(t, letterAt(3), letter)
	nodes.leads["n2"] = nil
	_, silent = s.DeadLetters(t.Context(), "sub_1", nil, 10)
	require.Equal(t, []string{"partition 1: no node leads it at the moment"}, silent)
	nodes.err = errors.New("no route")
	_, silent = s.DeadLetters(t.Context(), "sub_1", nil, 10)
	require.Equal(t, []string{"n1: no route", "n2: no route"}, silent)
}

// silentNode is a node that does not respond.
type silentNode struct{ *fakeStreamNodes }

func (s silentNode) DeadLetter(ctx context.Context, node metadata.Node, id subscription.RecordID) (subscription.DeadLetter, error) {
	if node.Name == "n1" {
		<-ctx.Done()
		return subscription.DeadLetter{}, ctx.Err()
	}
	return s.fakeStreamNodes.DeadLetter(ctx, node, id)
}

// A dead letter is read without waiting for nodes that do not store it.
func TestSilentNodesDoNotDelayDeadLetters(t *testing.T) {
	nodes := silentNode{&fakeStreamNodes{
		nodes:   []cluster.NodeStreams{{Node: metadata.Node{Name: "n1"}}, {Node: metadata.Node{Name: "n2"}}},
		letters: map[string][]subscription.DeadLetter{"n2": {letterAt(3)}},
	}}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		letter, err := (&Streams{Nodes: nodes}).DeadLetter(ctx, subscription.RecordID{Subscription: "sub_1", Topic: "t", Offset: 3})
		require.NoError(t, err)
		require.Equal(t, letterAt(3), letter)
		require.NoError(t, ctx.Err())
		_, err = (&Streams{Nodes: nodes}).DeadLetter(ctx, subscription.RecordID{Subscription: "sub_1", Topic: "t", Offset: 4})
		require.ErrorIs(t, err, context.DeadlineExceeded, "the node that stores it may be the silent one")
	})
}

func TestSilentNodesAreNamed(t *testing.T) {
	s := &Streams{Nodes: &fakeStreamNodes{nodes: []cluster.NodeStreams{
		{Node: metadata.Node{Name: "n1"}, Statuses: partitionOf(subscription.Running, 0)},
		{Node: metadata.Node{Name: "n2"}, Err: errors.New("no route")},
		{Node: metadata.Node{Name: "n3"}, Err: status.Error(codes.Unimplemented, "x")},
	}}}
	got := s.Statuses(t.Context(), "", false)
	require.Len(t, got.ByID["sub_1"], 1)
	require.Equal(t, []string{"n2: no route", "n3: its server is too old"}, got.Silent)
	_, err := s.ResolveStart(t.Context(), nil, nil)
	require.Error(t, err)
}

type fakeSubscriptions struct {
	list    []subscription.Subscription
	removed []string
}

func (f *fakeSubscriptions) Subscriptions() ([]subscription.Subscription, <-chan struct{}) {
	return f.list, nil
}

func (f *fakeSubscriptions) RemoveSubscription(_ context.Context, id string) error {
	f.removed = append(f.removed, id)
	return nil
}

func TestDeletedSubscriptionsAreRemovedOnceDrained(t *testing.T) {
	deleted := time.UnixMilli(1_700_000_000_000)
	for name, tc := range map[string]struct {
		draining bool
		after    time.Duration
		node     cluster.NodeStreams
		removed  bool
	}{
		"not deleted":         {draining: false, after: time.Hour},
		"not read":            {draining: true, removed: true},
		"in flight":           {draining: true, node: cluster.NodeStreams{Statuses: partitionOf(subscription.Draining, 1)}},
		"not noticed":         {draining: true, node: cluster.NodeStreams{Statuses: partitionOf(subscription.Running, 0)}},
		"drained":             {draining: true, node: cluster.NodeStreams{Statuses: partitionOf(subscription.Draining, 0)}, removed: true},
		"silent":              {draining: true, node: cluster.NodeStreams{Err: errors.New("x")}},
		"silent for too long": {draining: true, node: cluster.NodeStreams{Err: errors.New("x")}, after: time.Minute, removed: true},
	} {
		t.Run(name, func(t *testing.T) {
			store := &fakeSubscriptions{list: []subscription.Subscription{{ID: "sub_1", Draining: tc.draining, ModifiedAt: deleted}}}
			r := &Reaper{Store: store, Nodes: &fakeStreamNodes{nodes: []cluster.NodeStreams{tc.node}}, Now: func() time.Time { return deleted.Add(tc.after) }, Log: slog.New(slog.DiscardHandler)}
			r.round(t.Context())
			require.Equal(t, tc.removed, len(store.removed) == 1)
		})
	}
}
