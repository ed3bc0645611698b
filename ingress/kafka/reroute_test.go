package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/subscription"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition/machine"
	"platform/partition/store"
)

// freeze delays requests, or delivers them twice.
func (w *testCluster) freeze(frozen bool) {
	for _, s := range w.partitions {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	w.frozen = frozen
}

// stuck returns the number of requests that are stuck.
func (w *testCluster) stuck() (n int) {
	for _, s := range w.partitions {
		s.mu.Lock()
		n += len(s.earlier)
		s.mu.Unlock()
	}
	return n
}

// thaw delivers the requests that were stuck.
func (w *testCluster) thaw() {
	for _, s := range w.partitions {
		s.mu.Lock()
		for _, c := range s.earlier {
			s.apply(s.epoch, c)
		}
		s.mu.Unlock()
	}
}

// Requests of an earlier leader arrive when the subscription has another sink, whose records
// belong to other partitions: these neither become two invocations nor none.
func TestRequestsOfAnEarlierRoutingArriveLate(t *testing.T) {
	for _, produced := range []int{0, 40} { // after the edit
		t.Run(fmt.Sprint(produced), func(t *testing.T) {
			w := newTestCluster(t, 3)
			w.topic("orders", 1)
			want := map[int32][]int64{}
			produce := func(n int) {
				for i := range n {
					want[0] = append(want[0], w.produce(record("orders", 0, fmt.Sprint("k", i%7), "v"))...)
				}
			}
			produce(40)
			w.freeze(true)
			w.subscribe("sub_1", "Orders/add", []string{"orders"})
			first := w.start().leadAll()
			w.eventually("requests are stuck", func() bool { return w.stuck() >= 3 })
			for id := range w.partitions {
				first.resign(uint32(id))
			}
			w.freeze(false)
			w.source.change("sub_1", func(s *subscription.Subscription) { s.Sink = subscription.Sink{Service: "Greeter", Handler: "greet"} })
			h := w.start().leadAll()
			if produced == 0 {
				w.eventually("they are stored", func() bool { return w.createdCount() == 40 })
			}
			w.eventually("another leader has the new sink", func() bool { return h.status("orders", 0).Position > 0 })
			w.thaw()
			produce(produced)
			w.eventually("all are stored", func() bool { return w.createdCount() >= len(want[0]) })
			w.requireOnce("orders", want)
		})
	}
}

// Some records are stored when the sink changes: they are not delivered to the new one, and the
// others do not need the old handler, which may no longer exist.
func TestRecordsStoredBeforeTheRoutingChanged(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	want := map[int32][]int64{}
	for i := range 60 {
		want[0] = append(want[0], w.produce(record("orders", 0, fmt.Sprint("k", i%7), "v"))...)
	}
	w.partitions[1].full = true
	w.subscribe("sub_1", "Orders/add", []string{"orders"}, func(s *subscription.Subscription) { s.OnError = subscription.Skip })
	first := w.start().leadAll()
	w.eventually("the other partitions have theirs", func() bool {
		st := first.status("orders", 0)
		return st.State == subscription.Throttled && w.createdCount() > 20 && int(st.InFlight)+w.createdCount() == 60
	})
	for id := range w.partitions {
		first.resign(uint32(id))
	}
	w.source.register("Greeter/greet")
	w.source.change("sub_1", func(s *subscription.Subscription) { s.Sink = subscription.Sink{Service: "Greeter", Handler: "greet"} })
	w.partitions[1].mu.Lock()
	w.partitions[1].full = false
	w.partitions[1].mu.Unlock()
	h := w.start().leadAll()
	w.eventually("all are stored", func() bool { return w.createdCount() >= 60 && h.status("orders", 0).Position == 60 })
	w.requireOnce("orders", want)
	require.Zero(t, h.status("orders", 0).Skipped)
	s := h.engine.stream(subscription.RecordID{Subscription: "sub_1", Topic: "orders"})
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.routes.Earlier, "the position has passed them")
	require.NotContains(t, s.position.Routing, "Orders")
}

// The kind of a handler changes when its service is registered again: the stream continues.
func TestTheKindOfTheHandlerChanges(t *testing.T) {
	w := newTestCluster(t, 3)
	w.topic("orders", 1)
	want := map[int32][]int64{}
	produce := func() {
		for i := range 30 {
			want[0] = append(want[0], w.produce(record("orders", 0, fmt.Sprint("k", i%7), "v"))...)
		}
	}
	produce()
	w.subscribe("sub_1", "Orders/add", []string{"orders"})
	h := w.start().leadAll()
	w.eventually("they are stored", func() bool { return w.createdCount() == 30 })
	w.source.mu.Lock()
	plain := metadata.Service{Name: "Orders", Type: metadata.PlainService, Handlers: []*metadata.Handler{{Name: "add", Type: target.Service}}}
	w.source.schemas = &metadata.Schemas{Services: map[string]*metadata.Service{"Orders": &plain}}
	w.source.mu.Unlock()
	produce()
	w.eventually("the others are stored", func() bool { return w.createdCount() == 60 })
	w.requireOnce("orders", want)
	w.eventually("they are counted", func() bool { return h.status("orders", 0).Delivered == 60 })
	require.Empty(t, h.status("orders", 0).LastError)
}

// Brokers report the ID of a topic only since they were upgraded: its records keep their identity.
func TestTheIDOfATopicAppears(t *testing.T) {
	e := New(Config{Log: slog.New(slog.DiscardHandler)})
	r := newReader(e, subscription.Subscription{ID: "sub_1", Incarnation: 1}, subscription.Cluster{}, true)
	s := newStream(r, &owner{positions: &testOwner{s: &testPartition{}}}, topicPartition{"orders", 0}, [16]byte{1}, 0)
	before := machine.StreamPosition{Stream: machine.Stream{Subscription: "sub_1", Incarnation: 1, Topic: "orders"}, Next: 7, LeaderEpoch: -1}
	next, _, err := s.resume(&before)
	require.NoError(t, err)
	require.EqualValues(t, 7, next)
	require.Equal(t, before.Stream, s.id)
	require.Equal(t, [16]byte{1}, s.topic)

	before.Stream.TopicID = [16]byte{2}
	_, _, err = s.resume(&before)
	require.Equal(t, subscription.TopicRecreated, asFault(err).reason)
}

// rows are what a partition stores about streams.
type rows struct {
	positions
	incarnations []store.Incarnation
	stored       []*machine.StreamPosition
	forgotten    []machine.ForgetStreams
}

func (r *rows) Incarnations() ([]store.Incarnation, error)          { return r.incarnations, nil }
func (r *rows) Positions(string) ([]*machine.StreamPosition, error) { return r.stored, nil }
func (r *rows) Forget(_ context.Context, c *machine.ForgetStreams) error {
	r.forgotten = append(r.forgotten, *c)
	return nil
}

// outdated is the metadata of a node that has not received anything from the leader for a long
// time.
type outdated struct {
	*source
	known []subscription.Subscription
}

func (o *outdated) Subscriptions() ([]subscription.Subscription, <-chan struct{}) {
	return o.known, nil
}

// A node whose metadata is old does not delete the rows of subscriptions that it does not know.
func TestRowsAreDeletedOnlyOnceTheirSubscriptionIsKnownToBeDeleted(t *testing.T) {
	s := newSource(nil)
	for _, id := range []string{"sub_new", "sub_moved"} {
		s.change(id, func(sub *subscription.Subscription) { sub.Incarnation = 5 })
	}
	known := []subscription.Subscription{{ID: "sub_deleted", Incarnation: 2}, {ID: "sub_moved", Incarnation: 4}}
	e := New(Config{Source: &outdated{s, known}})
	r := &rows{
		incarnations: []store.Incarnation{{Subscription: "sub_deleted", Number: 1}, {Subscription: "sub_moved", Number: 3}, {Subscription: "sub_new", Number: 5}},
		stored:       []*machine.StreamPosition{{Stream: machine.Stream{Subscription: "sub_new", Incarnation: 5}}},
	}
	dead, now := map[store.Incarnation]time.Time{}, time.Now()
	e.forget(t.Context(), &owner{positions: r}, dead, now)
	require.Empty(t, r.forgotten)
	e.forget(t.Context(), &owner{positions: r}, dead, now.Add(garbageAge))
	require.Equal(t, []machine.ForgetStreams{
		{Subscription: "sub_deleted", Before: math.MaxUint64, Positions: true}, {Subscription: "sub_moved", Before: 5},
	}, r.forgotten)
}
