package metadata

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/internal/subscription"
)

func template(t string) subscription.Template {
	parsed, err := subscription.ParseTemplate(t)
	if err != nil {
		panic(err)
	}
	return parsed
}

// fullSubscription has all fields set that can be set together.
func fullSubscription() subscription.Subscription {
	offsets := subscription.TopicOffsets{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: 12}, {Partition: 300, Offset: 1 << 40}}}
	return subscription.Subscription{
		ID:         ids.NewSubscription([16]byte{1, 2, 3}),
		Source:     subscription.Source{Cluster: "main", Topics: []string{"orders", "returns"}},
		Sink:       subscription.Sink{Service: "Greeter", Handler: "greet"},
		Properties: map[string]string{"client.rack": "a", "isolation.level": "read_committed"},
		Options: subscription.Options{
			Ordering: subscription.Unordered, OnError: subscription.DeadLetters, DeadLetterTopic: "{topic}.dlq", Tombstones: subscription.SkipTombstones,
			Headers: []string{"a", "b"}, Scope: template("{topic}"), LimitKey: template("{header:tenant}"), MaxInFlight: 77,
		},
		Incarnation: 3,
		Start:       subscription.Start{Kind: subscription.StartOffsets, Otherwise: subscription.StartEarliest, Offsets: []subscription.TopicOffsets{offsets}},
		Offsets:     []subscription.TopicStart{{TopicOffsets: offsets, ID: [16]byte{9, 8}}},
		Resolved:    true,
		Paused:      &subscription.Pause{By: "::1", Reason: "a deploy", At: goldenTime},
		Draining:    true, CreatedAt: goldenTime, ModifiedAt: goldenTime, Version: 300,
	}
}

// patternSubscription has the fields that fullSubscription does not have.
func patternSubscription() subscription.Subscription {
	return subscription.Subscription{
		ID:     ids.NewSubscription([16]byte{4}),
		Source: subscription.Source{Cluster: "main", Pattern: "orders-.*"}, Sink: subscription.Sink{Service: "S", Handler: "h"},
		Options:     subscription.Options{AllHeaders: true, MaxInFlight: 1, OnRecreate: subscription.RecreatedFromEarliest},
		Incarnation: 1, Start: subscription.Start{Kind: subscription.StartTimestamp, Timestamp: goldenTime},
	}
}

func fullKafkaCluster() subscription.Cluster {
	return subscription.Cluster{
		Name: "main", Properties: map[string]string{"bootstrap.servers": "127.0.0.1:9092", "sasl.password": "x"},
		CreatedAt: goldenTime, ModifiedAt: goldenTime, Version: 4,
	}
}

func newSubscription(m *memStore) subscription.Subscription {
	return subscription.Subscription{
		ID:     m.NewSubscriptionID(),
		Source: subscription.Source{Cluster: "main", Topics: []string{"t"}}, Sink: subscription.Sink{Service: "S", Handler: "h"},
		Options: subscription.Options{MaxInFlight: 1}, Start: subscription.Start{Kind: subscription.StartLatest},
	}
}

func TestSubscriptionIsCreatedChangedAndRemoved(t *testing.T) {
	m := atLevel4(t)
	_, changed := m.Subscriptions()
	created, err := m.CreateSubscription(t.Context(), newSubscription(m))
	require.NoError(t, err)
	<-changed
	require.EqualValues(t, 1, created.Incarnation)
	require.EqualValues(t, 1, created.Version)
	stored, known := m.Subscription(created.ID)
	require.True(t, known)
	require.Equal(t, created, stored)

	offsets := fullSubscription().Offsets
	offsets[0].Topic = "t"
	resolved, err := m.ResolveSubscription(t.Context(), created.ID, 1, offsets)
	require.NoError(t, err)
	require.True(t, resolved.Resolved)
	again, err := m.ResolveSubscription(t.Context(), created.ID, 1, nil)
	require.NoError(t, err)
	require.Equal(t, resolved, again, "the first resolution remains")
	offset, known := again.StartOf("t", 300)
	require.True(t, known)
	require.EqualValues(t, 1<<40, offset)

	paused, err := m.ChangeSubscription(t.Context(), created.ID, func(s subscription.Subscription) (subscription.Subscription, error) {
		s.Paused = &subscription.Pause{By: "me", At: time.UnixMilli(1)}
		return s, nil
	})
	require.NoError(t, err)
	require.NotNil(t, paused.Paused)
	require.EqualValues(t, 3, paused.Version)
	_, err = m.ChangeSubscription(t.Context(), created.ID, func(s subscription.Subscription) (subscription.Subscription, error) {
		return s, errors.New("no")
	})
	require.EqualError(t, err, "no")

	require.NoError(t, m.RemoveSubscription(t.Context(), created.ID))
	require.NoError(t, m.RemoveSubscription(t.Context(), created.ID))
	list, _ := m.Subscriptions()
	require.Empty(t, list)
	_, err = m.ChangeSubscription(t.Context(), created.ID, nil)
	require.ErrorIs(t, err, ErrSubscriptionNotFound)
}

func TestOutdatedChangeOfSubscriptionIsRejected(t *testing.T) {
	m := atLevel4(t)
	created, err := m.CreateSubscription(t.Context(), newSubscription(m))
	require.NoError(t, err)
	_, err = propose[subscription.Subscription](t.Context(), &m.Store, &putSubscription{created, 7})
	require.ErrorIs(t, err, errSubscriptionChanged)
	_, err = propose[subscription.Subscription](t.Context(), &m.Store, &putSubscription{created, 0})
	require.ErrorIs(t, err, errSubscriptionChanged)
}

func TestKafkaClusterIsCreatedChangedAndDeleted(t *testing.T) {
	m := atLevel4(t)
	created, err := m.CreateKafkaCluster(t.Context(), subscription.Cluster{Name: "main", Properties: fullKafkaCluster().Properties})
	require.NoError(t, err)
	require.EqualValues(t, 1, created.Version)
	_, err = m.CreateKafkaCluster(t.Context(), created)
	require.ErrorIs(t, err, ErrClusterExists)

	changed, err := m.ChangeKafkaCluster(t.Context(), "main", func(map[string]string) (map[string]string, error) {
		return map[string]string{"bootstrap.servers": "h:1"}, nil
	})
	require.NoError(t, err)
	require.Equal(t, created.CreatedAt, changed.CreatedAt)
	_, err = m.ChangeKafkaCluster(t.Context(), "main", func(map[string]string) (map[string]string, error) { return nil, nil })
	require.ErrorContains(t, err, "need bootstrap.servers")
	_, err = m.ChangeKafkaCluster(t.Context(), "other", nil)
	require.ErrorIs(t, err, ErrClusterNotFound)

	sub, err := m.CreateSubscription(t.Context(), newSubscription(m))
	require.NoError(t, err)
	err = m.DeleteKafkaCluster(t.Context(), "main", false)
	require.ErrorIs(t, err, ErrClusterInUse)
	require.ErrorContains(t, err, sub.ID+" reads from main; delete it first")
	_, err = m.ChangeSubscription(t.Context(), sub.ID, func(s subscription.Subscription) (subscription.Subscription, error) {
		s.Draining = true
		return s, nil
	})
	require.NoError(t, err)
	require.ErrorContains(t, m.DeleteKafkaCluster(t.Context(), "main", false), "it is being deleted")
	require.NoError(t, m.DeleteKafkaCluster(t.Context(), "main", true))
	require.ErrorIs(t, m.DeleteKafkaCluster(t.Context(), "main", true), ErrClusterNotFound)
	require.Empty(t, m.KafkaClusters())
}

func TestSubscriptionsAreReadFromTheFile(t *testing.T) {
	f := openFSM(t, t.TempDir()+"/state.db")
	d := newDraft(f.view.Load().state)
	for _, cmd := range []command{
		&putSubscription{fullSubscription(), 0}, &putSubscription{patternSubscription(), 0}, &putKafkaCluster{fullKafkaCluster(), 0},
	} {
		o, err := apply(d, 1, goldenTime, cmd)
		require.NoError(t, err)
		require.NoError(t, o.rejection)
	}
	require.NoError(t, f.db.write(f.Applied(), d.writes))
	st, _, err := f.db.load()
	require.NoError(t, err)
	require.Equal(t, d.subscriptions, st.subscriptions)
	require.Equal(t, d.clusters, st.clusters)
	require.NoError(t, f.db.close())
}

// A recovery can lose a seek whose incarnation partitions know: the next one has another number.
func TestIncarnationsAreNotRepeated(t *testing.T) {
	m := atLevel4(t)
	created, err := m.CreateSubscription(t.Context(), newSubscription(m))
	require.NoError(t, err)
	before := m.now().UnixMilli()
	sought, err := m.ChangeSubscription(t.Context(), created.ID, func(s subscription.Subscription) (subscription.Subscription, error) {
		s.Incarnation++
		return s, nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, sought.Incarnation, uint64(before))
	again, err := m.ChangeSubscription(t.Context(), created.ID, func(s subscription.Subscription) (subscription.Subscription, error) {
		s.Incarnation++
		return s, nil
	})
	require.NoError(t, err)
	require.Greater(t, again.Incarnation, sought.Incarnation)

	confirmed, err := m.ConfirmedSubscriptions(t.Context())
	require.NoError(t, err)
	require.Equal(t, []subscription.Subscription{again}, confirmed)
}
