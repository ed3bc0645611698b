package kafka

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

var propertyRounds = flag.Int("kafka.rounds", 6, "random histories of TestEveryRecordBecomesOneInvocation")

// history produces records while leaders change, requests and responses are lost, brokers move
// topic partitions, and subscriptions are paused and edited. Every committed record becomes exactly
// one invocation, in order for its key.
type history struct {
	*world
	rand     *rand.Rand
	hosts    []*host
	leader   []int // node that leads each partition
	producer *kgo.Client
	want     map[int32][]int64
	topics   int32
	total    int
}

func TestEveryRecordBecomesOneInvocation(t *testing.T) {
	for round := range *propertyRounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			runHistory(t, uint64(round))
		})
	}
}

func runHistory(t *testing.T, seed uint64) {
	w := newWorld(t, 4)
	w.lossy = true
	h := &history{world: w, rand: rand.New(rand.NewPCG(seed, 7)), leader: make([]int, 4), want: map[int32][]int64{}, topics: 3}
	w.topic("orders", h.topics)
	var err error
	h.producer, err = kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer h.producer.Close()
	for range 3 {
		h.hosts = append(h.hosts, w.start())
	}
	for id := range w.shards {
		h.hosts[0].lead(uint32(id))
	}
	w.subscribe("sub_1", []string{"Orders/add", "Greeter/greet"}[seed%2], []string{"orders"}, func(s *subscription.Subscription) { s.MaxInFlight = uint32(1 + h.rand.IntN(100)) })
	for range 150 {
		h.step()
	}
	h.settle()
	w.requireOnce("orders", h.want)
}

func (h *history) step() {
	switch h.rand.IntN(20) {
	case 0, 1, 2: // another node leads a partition; the old one may learn of it late
		id := h.rand.IntN(len(h.shards))
		old := h.hosts[h.leader[id]]
		h.leader[id] = h.rand.IntN(len(h.hosts))
		next := h.hosts[h.leader[id]]
		late := h.rand.IntN(2) == 0 && old != next
		if !late {
			old.resign(uint32(id))
		}
		next.lead(uint32(id))
		if late {
			h.produce()
			old.resign(uint32(id))
		}
	case 3:
		require.NoError(h.t, h.kafka.MoveTopicPartition("orders", h.rand.Int32N(h.topics), h.rand.Int32N(3)))
	case 4:
		h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	case 5:
		h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	case 6, 7:
		h.source.change("sub_1", func(s *subscription.Subscription) { s.MaxInFlight = uint32(1 + h.rand.IntN(100)) })
	case 8:
		s := h.shards[h.rand.IntN(len(h.shards))]
		s.mu.Lock()
		s.full = !s.full
		s.mu.Unlock()
	case 9, 10, 11:
		to := subscription.Sink{Service: "Orders", Handler: "add"}
		if h.rand.IntN(2) == 0 {
			to = subscription.Sink{Service: "Greeter", Handler: "greet"}
		}
		h.source.change("sub_1", func(s *subscription.Subscription) { s.Sink = to })
	case 12:
		ordering := subscription.Ordering(h.rand.IntN(3) / 2 * 2) // invocations do not end here
		h.source.change("sub_1", func(s *subscription.Subscription) { s.Ordering = ordering })
	default:
		h.produce()
	}
}

// produce writes records in a transaction, which is sometimes aborted.
func (h *history) produce() {
	var records []*kgo.Record
	for range 1 + h.rand.IntN(20) {
		records = append(records, record("orders", h.rand.Int32N(h.topics), fmt.Sprint("k", h.rand.IntN(9)), "v"))
	}
	require.NoError(h.t, h.producer.BeginTransaction())
	require.NoError(h.t, h.producer.ProduceSync(h.t.Context(), records...).FirstErr())
	commit := h.rand.IntN(4) != 0
	require.NoError(h.t, h.producer.EndTransaction(h.t.Context(), kgo.TransactionEndTry(commit)))
	if !commit {
		return
	}
	for _, r := range records {
		h.want[r.Partition] = append(h.want[r.Partition], r.Offset)
	}
	h.total += len(records)
}

// settle removes the faults and waits until everything is stored.
func (h *history) settle() {
	h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	for _, s := range h.shards {
		s.mu.Lock()
		s.full = false
		s.mu.Unlock()
	}
	h.eventually("all records are stored", func() bool { return h.createdCount() >= h.total })
}
