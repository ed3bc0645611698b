package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// Operators can read every record that the broker has, also while the subscription is paused. Offsets without a
// record fail without waiting.
func TestRecordsForOperators(t *testing.T) {
	w := newTestCluster(t, 2)
	w.topic("orders", 1)
	w.produce(record("orders", 0, "a", "1"), record("orders", 0, "b", "2"), record("orders", 0, "c", "3"))
	require.NoError(t, w.kafka.DeleteRecords("orders", 0, 1))
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 2 })
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	w.eventually("it is paused", func() bool {
		st := h.engine.Statuses("sub_1", true)
		return len(st) == 1 && st[0].State == subscription.Paused && h.status("orders", 0).End == 3
	})
	id := subscription.RecordID{Subscription: "sub_1", Topic: "orders", Offset: 2}
	found, err := h.engine.Record(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "3", string(found.Value))
	for offset, text := range map[int64]string{
		0: "its records begin at 1", 3: "the next one will be at 3", 1000: "has no record at offset 1000",
	} {
		id.Offset = offset
		_, err := h.engine.Record(t.Context(), id)
		require.ErrorIs(t, err, subscription.ErrNoRecord)
		require.ErrorContains(t, err, text)
	}
	id.Partition = 7
	_, err = h.engine.Record(t.Context(), id)
	require.ErrorIs(t, err, subscription.ErrNoRecord)
	require.ErrorContains(t, err, "orders has no partition 7")
	require.ErrorIs(t, h.engine.Skip(t.Context(), id), subscription.ErrNotBlocked)
}

// The marker of a transaction is not shown as a record, and a record of a transaction that has not ended is not
// waited for.
func TestTransactionsForOperators(t *testing.T) {
	w := newTestCluster(t, 1)
	w.topic("orders", 1)
	producer, err := kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.TransactionalID("tx"))
	require.NoError(t, err)
	defer producer.Close()
	require.NoError(t, producer.BeginTransaction())
	require.NoError(t, producer.ProduceSync(t.Context(), record("orders", 0, "a", "1")).FirstErr())
	require.NoError(t, producer.EndTransaction(t.Context(), kgo.TryCommit))
	require.NoError(t, producer.BeginTransaction())
	require.NoError(t, producer.ProduceSync(t.Context(), record("orders", 0, "a", "2")).FirstErr())
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("the first is stored", func() bool { return w.createdCount() == 1 && h.status("orders", 0).Position == 2 })
	for offset, text := range map[int64]string{1: "belongs to a transaction", 2: "has not ended"} {
		_, err := h.engine.Record(t.Context(), subscription.RecordID{Subscription: "sub_1", Topic: "orders", Offset: offset})
		require.ErrorIs(t, err, subscription.ErrNoRecord)
		require.ErrorContains(t, err, text)
	}
}
