package query

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
)

func TestSubscriptionTables(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	state := SubscriptionState{
		Subscription: subscription.Subscription{
			ID: "sub_1", Source: subscription.Source{Cluster: "main", Topics: []string{"orders"}}, Sink: subscription.Sink{Service: "S", Handler: "h"},
			Properties: map[string]string{"sasl.password": "geheim"}, Incarnation: 1, Paused: &subscription.Pause{By: "me", Reason: "r", At: at},
			Offsets: []subscription.TopicStart{{TopicOffsets: subscription.TopicOffsets{Topic: "orders", Offsets: []subscription.PartitionOffset{{Partition: 0, Offset: 2}}}}},
		},
		Status: subscription.Status{State: subscription.Blocked, Partitions: []subscription.PartitionStatus{
			{Topic: "orders", State: subscription.Blocked, Node: 1, Position: 5, End: 9, LagSeconds: 1.5, Blocked: &subscription.BlockedRecord{Offset: 5, Reason: subscription.KeyMissing}},
			{Topic: "orders", Partition: 1, State: subscription.Running, Position: 1, End: 1},
		}},
	}
	e := newTestEngine(t, Config{Subscriptions: func(context.Context) []SubscriptionState { return []SubscriptionState{state} }})
	got := encoded(t, ask(t, e, "SELECT id, source, state, options, topic_partitions, blocked_partitions, lag_records, paused_reason FROM sys_subscription"))
	require.JSONEq(t, `[{"id":"sub_1","source":"kafka://main/orders","state":"blocked","options":"{\"sasl.password\":\"***\"}","topic_partitions":2,"blocked_partitions":1,"lag_records":4,"paused_reason":"r"}]`, got)
	got = encoded(t, ask(t, e, "SELECT partition, node_id, start_offset, position, lag_records, blocked_offset, blocked_reason FROM sys_subscription_partition WHERE subscription_id = 'sub_1' ORDER BY partition"))
	require.JSONEq(t, `[{"partition":0,"node_id":"N1","start_offset":2,"position":5,"lag_records":4,"blocked_offset":5,"blocked_reason":"key_missing"},
		{"partition":1,"position":1,"lag_records":0}]`, got)
	require.JSONEq(t, `[{"lag":"PT1.5S"}]`, encoded(t, ask(t, e, "SELECT lag FROM sys_subscription")))
	state.Status.Partitions[0].LagSeconds = 0
	require.JSONEq(t, `[{}]`, encoded(t, ask(t, e, "SELECT lag FROM sys_subscription")), "its records are not fetched")
	require.JSONEq(t, `[{},{"lag":"P0D"}]`, encoded(t, ask(t, e, "SELECT lag FROM sys_subscription_partition ORDER BY partition")))
	state.Status.Partitions[1].End = -1
	require.JSONEq(t, `[{}]`, encoded(t, ask(t, e, "SELECT lag_records FROM sys_subscription")))
}

func TestDeadLetterTable(t *testing.T) {
	state := SubscriptionState{Subscription: subscription.Subscription{ID: "sub_1"}, Status: subscription.Status{DeadLetters: letterPage + 1}}
	letter := func(offset int64) subscription.DeadLetter {
		return subscription.DeadLetter{Record: subscription.Record{Topic: "orders", Offset: offset, ValueSize: 3}, Reason: subscription.KeyMissing}
	}
	e := newTestEngine(t, Config{
		Subscriptions: func(context.Context) []SubscriptionState { return []SubscriptionState{state, {}} },
		DeadLetters: func(_ context.Context, id string, after *subscription.RecordID, limit int) (letters []subscription.DeadLetter, _ []string) {
			require.Equal(t, "sub_1", id)
			first := int64(0)
			if after != nil {
				first = after.Offset + 1
			}
			for offset := first; offset <= letterPage && len(letters) < limit; offset++ {
				letters = append(letters, letter(offset))
			}
			return letters, nil
		},
	})
	got := encoded(t, ask(t, e, "SELECT count(*) AS n, max(record_offset) AS last FROM sys_dead_letter WHERE subscription_id = 'sub_1'"))
	require.JSONEq(t, `[{"n":1001,"last":1000}]`, got)
	got = encoded(t, ask(t, e, "SELECT topic, partition, reason, value_bytes FROM sys_dead_letter WHERE record_offset = 5"))
	require.JSONEq(t, `[{"topic":"orders","partition":0,"reason":"key_missing","value_bytes":3}]`, got)
}

// The pages before the one that a query has reached are not kept, and it reads no more than it needs.
func TestDeadLettersAreReadInPages(t *testing.T) {
	state := SubscriptionState{Subscription: subscription.Subscription{ID: "sub_1"}, Status: subscription.Status{DeadLetters: 1}}
	pages := 0
	e := newTestEngine(t, Config{
		Subscriptions: func(context.Context) []SubscriptionState { return []SubscriptionState{state} },
		DeadLetters: func(_ context.Context, _ string, after *subscription.RecordID, limit int) ([]subscription.DeadLetter, []string) {
			letters := make([]subscription.DeadLetter, limit) // without end
			for i := range letters {
				letters[i].Offset = int64(pages*limit + i)
			}
			pages++
			return letters, nil
		},
	})
	require.JSONEq(t, `[{"record_offset":2000}]`, encoded(t, ask(t, e, fmt.Sprintf("SELECT record_offset FROM sys_dead_letter LIMIT 1 OFFSET %d", 2*letterPage))))
	require.Equal(t, 3, pages)
}

func encoded(t *testing.T, rows []map[string]any) string {
	t.Helper()
	data, err := json.Marshal(rows)
	require.NoError(t, err)
	return string(data)
}
