package kafka

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/internal/subscription"
)

var propertyRounds = flag.Int("kafka.rounds", 6, "random histories of TestEveryRecordBecomesOneInvocation")

// history produces records while leaders change, requests and responses are lost, brokers move
// topic partitions, fail and add some, and subscriptions are paused and edited. Every committed
// record becomes exactly one invocation, in order for its key. Once they have, the topic is created
// again, loses records before they are read, or the subscription seeks, and so on.
type history struct {
	*testCluster
	rand      *rand.Rand
	hosts     []*host
	leader    []int // node that leads each partition
	producer  *kgo.Client
	committed map[int32][]int64 // that the topic has
	want      map[int32][]int64 // that become invocations
	topics    int32
	last      uint64 // incarnation
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
	w := newTestCluster(t, 4)
	w.lossy = true
	h := &history{testCluster: w, rand: rand.New(rand.NewPCG(seed, 7)), leader: make([]int, 4), committed: map[int32][]int64{}, want: map[int32][]int64{}, topics: 3, last: 1}
	w.topic("orders", h.topics)
	var err error
	h.producer, err = kgo.NewClient(kgo.SeedBrokers(w.kafka.ListenAddrs()...), kgo.TransactionalID("tx"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	defer h.producer.Close()
	for range 3 {
		h.hosts = append(h.hosts, w.start())
	}
	for id := range w.partitions {
		h.hosts[0].lead(uint32(id))
	}
	w.subscribe("sub_1", []string{"Orders/add", "Greeter/greet"}[seed%2], []string{"orders"}, func(s *subscription.Subscription) {
		s.MaxInFlight, s.OnRecreate = uint32(1+h.rand.IntN(100)), subscription.RecreatedFromEarliest
	})
	turns := []func(){h.seek, h.recreate, h.expire}
	for i := range len(turns) + 1 {
		for range 50 {
			h.step()
		}
		h.settle()
		w.requireOnce("orders", h.want)
		if i < len(turns) {
			turns[(int(seed)+i)%len(turns)]()
		}
	}
}

func (h *history) step() {
	switch h.rand.IntN(20) {
	case 0, 1, 2: // another node leads a partition; the old one may learn of it late
		id := h.rand.IntN(len(h.partitions))
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
		s := h.partitions[h.rand.IntN(len(h.partitions))]
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
	case 13:
		h.fail()
	case 14:
		if h.topics < 6 {
			h.topics++
			h.grow("orders", int(h.topics))
			h.producer.PurgeTopicsFromClient("orders")
		}
	default:
		h.produce()
	}
}

// fail lets brokers fail some fetches, or lose connections with the responses on them.
func (h *history) fail() {
	if h.rand.IntN(2) == 0 {
		node := h.rand.IntN(3)
		h.reach(node, false)
		h.reach(node, true)
		return
	}
	errs := []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.UnknownTopicOrPartition, kerr.UnknownServerError, kerr.KafkaStorageError}
	h.kafka.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders", Err: errs[h.rand.IntN(len(errs))], Count: 1 + h.rand.IntN(5)})
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
		h.committed[r.Partition] = append(h.committed[r.Partition], r.Offset)
		h.want[r.Partition] = append(h.want[r.Partition], r.Offset)
	}
}

// settle removes the faults and waits until everything is stored.
func (h *history) settle() {
	h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	for _, s := range h.partitions {
		s.mu.Lock()
		s.full = false
		s.mu.Unlock()
	}
	h.eventually("all records are stored", func() bool {
		h.notify()
		return h.createdCount() >= h.total()
	})
}

func (h *history) total() (n int) {
	for _, offsets := range h.want {
		n += len(offsets)
	}
	return n
}

// notify makes the nodes notice changes of the topic.
func (h *history) notify() {
	for _, host := range h.hosts {
		if r := host.engine.reader("sub_1"); r != nil {
			r.notify()
		}
	}
}

// from expects the records of the topic from these offsets on, and nothing before.
func (h *history) from(start func(partition int32) int64) {
	h.want = map[int32][]int64{}
	for p, offsets := range h.committed {
		for _, o := range offsets {
			if o >= start(p) {
				h.want[p] = append(h.want[p], o)
			}
		}
	}
	for _, s := range h.partitions {
		s.mu.Lock()
		s.state.created = nil
		s.mu.Unlock()
	}
}

// seek continues somewhere else: the records from there on are delivered once more.
func (h *history) seek() {
	starts := subscription.TopicStart{TopicOffsets: subscription.TopicOffsets{Topic: "orders"}}
	at := map[int32]int64{}
	for p := range h.topics {
		if known := h.committed[p]; len(known) > 0 {
			at[p] = known[h.rand.IntN(len(known))] + int64(h.rand.IntN(2))
		}
		starts.Offsets = append(starts.Offsets, subscription.PartitionOffset{Partition: p, Offset: at[p]})
	}
	h.from(func(p int32) int64 { return at[p] })
	h.incarnate(starts)
	// What is produced before a node has noticed the change is delivered twice.
	h.eventually("the readers are replaced", func() bool {
		return !slices.ContainsFunc(h.hosts, func(host *host) bool {
			r := host.engine.reader("sub_1")
			return r != nil && r.sub.Incarnation != h.last
		})
	})
}

func (h *history) incarnate(starts ...subscription.TopicStart) {
	h.last++
	h.source.change("sub_1", func(s *subscription.Subscription) {
		s.Incarnation, s.Resolved, s.Offsets = h.last, starts != nil, starts
	})
}

// recreate deletes the topic and creates it again: it is read from its beginning.
func (h *history) recreate() {
	require.NoError(h.t, h.kafka.DeleteTopic("orders"))
	h.topic("orders", h.topics)
	h.producer.PurgeTopicsFromClient("orders")
	h.committed = map[int32][]int64{}
	h.from(nil)
}

// expire deletes records before they are read. Their topic partition blocks, until a seek to the
// oldest that are left.
func (h *history) expire() {
	h.pauseAll()
	before := len(h.committed[0])
	for len(h.committed[0]) < before+2 {
		h.produce()
	}
	first := h.committed[0][before+1]
	require.NoError(h.t, h.kafka.DeleteRecords("orders", 0, first))
	kept := h.committed[0][before+1:]
	h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
	h.eventually("it blocks", func() bool {
		h.notify()
		for _, host := range h.hosts {
			if st := host.status("orders", 0); st.State == subscription.Blocked && st.Reason == subscription.OffsetOutOfRange {
				return true
			}
		}
		return false
	})
	h.committed[0] = kept
	h.pauseAll()
	h.from(func(int32) int64 { return 0 })
	h.incarnate()
	h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = nil })
}

// pauseAll pauses the subscription and waits until nothing is in flight.
func (h *history) pauseAll() {
	h.source.change("sub_1", func(s *subscription.Subscription) { s.Paused = &subscription.Pause{} })
	h.eventually("it is paused", func() bool {
		for _, host := range h.hosts {
			for _, st := range host.engine.Statuses("sub_1", false) {
				if st.State != subscription.Paused {
					return false
				}
			}
		}
		return true
	})
}
