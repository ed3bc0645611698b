package kafka

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"platform/internal/subscription"
)

// network connects to brokers, some of which cannot be reached.
type network struct {
	net.Dialer
	down  map[string]bool
	conns map[string][]net.Conn
}

// dial connects to a broker.
func (w *testCluster) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	w.mu.Lock()
	down := w.network.down[address]
	w.mu.Unlock()
	if down {
		return nil, errors.New("no route to " + address)
	}
	conn, err := w.network.DialContext(ctx, kind, address)
	if err == nil {
		w.mu.Lock()
		w.network.conns[address] = append(w.network.conns[address], conn)
		w.mu.Unlock()
	}
	return conn, err
}

// reach makes a broker reachable or not, for the server only.
func (w *testCluster) reach(node int, reachable bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	address := w.kafka.ListenAddrs()[node]
	w.network.down[address] = !reachable
	for _, c := range w.network.conns[address] {
		_ = c.Close()
	}
	w.network.conns[address] = nil
}

// spread creates a topic of which each broker leads one partition, and a subscription.
func (w *testCluster) spread(topic string) {
	w.topic(topic, 3)
	for p := range int32(3) {
		require.NoError(w.t, w.kafka.MoveTopicPartition(topic, p, p))
	}
	w.subscribe("sub_1", "Greeter/greet", []string{topic})
}

// While a broker cannot be reached, the topic partitions of the others are read, also by a node that
// begins to read them.
func TestABrokerThatCannotBeReachedStopsOnlyItsTopicPartitions(t *testing.T) {
	w := newTestCluster(t, 4)
	w.spread("orders")
	first, second := w.start().leadAll(), w.start()
	want := map[int32][]int64{}
	produce := func(partitions ...int32) {
		for _, p := range partitions {
			want[p] = append(want[p], w.produce(record("orders", p, "", "1"))...)
		}
	}
	produce(0, 1, 2)
	w.eventually("they are stored", func() bool { return w.createdCount() == 3 })
	w.eventually("the positions are stored", func() bool { return first.status("orders", 2).Position == 1 })

	w.reach(2, false)
	for id := range w.partitions {
		first.resign(uint32(id))
	}
	second.leadAll()
	produce(0, 1, 2)
	w.eventually("the others are read", func() bool { return w.createdCount() == 5 })
	w.eventually("it says why", func() bool {
		st := second.status("orders", 2)
		return st.State == subscription.Failed && st.Reason == subscription.BrokerUnreachable
	})
	require.Equal(t, subscription.Running, second.status("orders", 0).State)

	w.reach(2, true)
	w.eventually("it is read", func() bool { return w.createdCount() == 6 })
	w.requireOnce("orders", want)
}

// A topic partition whose broker can no longer be reached is in error, although nothing is known to
// be late.
func TestATopicPartitionLosesItsBroker(t *testing.T) {
	w := newTestCluster(t, 4)
	w.spread("orders")
	h := w.start().leadAll()
	running := func() bool {
		for p := range int32(3) {
			if h.status("orders", p).State != subscription.Running {
				return false
			}
		}
		return true
	}
	w.eventually("all are read", running)
	w.reach(1, false)
	w.eventually("it is an error", func() bool {
		h.engine.reader("sub_1").notify()
		st := h.status("orders", 1)
		return st.State == subscription.Failed && st.Reason == subscription.BrokerUnreachable
	})
	require.Equal(t, subscription.Running, h.status("orders", 0).State)
	w.reach(1, true)
	w.eventually("it is read again", running)
	w.produce(record("orders", 1, "", "1"))
	w.eventually("it is stored", func() bool { return w.createdCount() == 1 })
}

// A topic partition whose broker can no longer be reached is in error, also if no broker responds to
// requests for the topics.
func TestATopicPartitionLosesItsBrokerWhileTopicsAreUnknown(t *testing.T) {
	w := newTestCluster(t, 4)
	w.spread("orders")
	h := w.start().leadAll()
	state := func(p int32, state subscription.State) func() bool {
		return func() bool {
			if r := h.engine.reader("sub_1"); r != nil {
				r.notify()
			}
			return h.status("orders", p).State == state
		}
	}
	for p := range int32(3) {
		w.eventually("it is read", state(p, subscription.Running))
	}
	w.kafka.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		w.kafka.KeepControl()
		return nil, errors.New("no response"), true
	})
	w.eventually("the topics are unknown", func() bool {
		all := h.engine.Statuses("sub_1", true)
		return len(all) == 1 && all[0].State == subscription.Failed
	})
	w.reach(1, false)
	w.eventually("it is an error", state(1, subscription.Failed))
	require.Equal(t, subscription.Running, h.status("orders", 0).State)
}
