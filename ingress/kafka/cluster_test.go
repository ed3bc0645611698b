package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/subscription"
	"platform/internal/target"
	"platform/metadata"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
	"platform/partition/store"
	"platform/proto/service"
)

// testCluster is a cluster of the server, whose partitions are real state machines, beside a fake
// Kafka cluster.
type testCluster struct {
	commitInterval time.Duration // of engines; 0: the default

	t          *testing.T
	kafka      *kfake.Cluster
	client     *kgo.Client
	source     *source
	partitions []*testPartition
	lossy      bool // requests and responses are lost and repeated
	frozen     bool // requests with records are only noted in testPartition.earlier

	mu      sync.Mutex // covers the fields below
	rand    *rand.Rand
	ended   map[ids.Invocation]chan struct{}
	network network
	metrics *Metrics
}

// testPartition is a partition of the server.
type testPartition struct {
	w       *testCluster
	id      uint32
	mu      sync.Mutex // covers the fields below
	machine *machine.Machine
	state   recordingState
	epoch   uint64
	full    bool // refuses records
	earlier []*machine.Ingest
}

// created is an invocation that was created.
type created struct {
	id      ids.Invocation
	target  machine.Target
	trace   machine.Trace
	headers map[string]string
	body    []byte
}

// recordingState records which invocations were created, in order.
type recordingState struct {
	*machinetest.State
	targets map[ids.Invocation]*machine.Invocation
	created []created
}

func (s *recordingState) PutInvocation(inv *machine.Invocation) {
	if s.targets[inv.ID] == nil {
		copied := *inv
		s.targets[inv.ID] = &copied
		for i := range s.created {
			if s.created[i].id == inv.ID {
				s.created[i].target, s.created[i].trace = inv.Target, inv.Trace
			}
		}
	}
	s.State.PutInvocation(inv)
}

func (s *recordingState) AppendEntry(id ids.Invocation, index uint32, e journal.Entry) {
	if index == 0 {
		var input service.InputCommandMessage
		if err := proto.Unmarshal(e.Payload, &input); err != nil {
			panic(err)
		}
		c := created{id: id, headers: map[string]string{}, body: input.Value.GetContent()}
		for _, h := range input.Headers {
			c.headers[h.Key] = h.Value
		}
		s.created = append(s.created, c)
	}
	s.State.AppendEntry(id, index, e)
}

func newTestCluster(t *testing.T, partitions uint32, opts ...kfake.Opt) *testCluster {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(3)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(fake.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w := &testCluster{t: t, kafka: fake, client: client, rand: rand.New(rand.NewPCG(1, 2)), ended: map[ids.Invocation]chan struct{}{}, network: network{down: map[string]bool{}, conns: map[string][]net.Conn{}}}
	w.source = newSource(fake.ListenAddrs())
	for id := range partitions {
		w.partitions = append(w.partitions, &testPartition{
			w: w, id: id, machine: machine.New(machine.Shards{Self: id, Count: partitions}),
			state: recordingState{State: machinetest.New(), targets: map[ids.Invocation]*machine.Invocation{}},
		})
	}
	return w
}

func (w *testCluster) chance(oneIn int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(oneIn) == 0
}

func (w *testCluster) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

// Count implements Partitions.
func (w *testCluster) Count() uint32 { return uint32(len(w.partitions)) }

// Ingest implements Partitions, with the faults of a network.
func (w *testCluster) Ingest(ctx context.Context, id uint32, c *machine.Ingest) (machine.Outcome, error) {
	if ctx.Err() != nil {
		return machine.Outcome{}, context.Cause(ctx)
	}
	s := w.partitions[id]
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.frozen && len(c.Records) > 0 {
		s.earlier = append(s.earlier, c)
		return machine.Outcome{}, raftgroup.ErrUnknownOutcome
	}
	if s.full || w.lossy && w.chance(12) {
		if w.lossy {
			s.earlier = append(s.earlier, c) // it arrives later, or never
		}
		return machine.Outcome{}, raftgroup.ErrUnknownOutcome
	}
	if s.earlier = append(s.earlier, c); w.lossy && w.chance(6) { // a request that was delayed arrives
		s.apply(s.epoch, s.earlier[max(0, len(s.earlier)-1-w.pick(30))])
	}
	o := s.apply(s.epoch, c)
	if w.lossy && w.chance(12) {
		return machine.Outcome{}, raftgroup.ErrUnknownOutcome
	}
	return o, nil
}

// AwaitEnd implements Partitions: invocations end when the test ends them.
func (w *testCluster) AwaitEnd(ctx context.Context, id ids.Invocation) error {
	w.mu.Lock()
	if w.ended[id] == nil {
		w.ended[id] = make(chan struct{})
	}
	ended := w.ended[id]
	w.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end ends an invocation.
func (w *testCluster) end(id ids.Invocation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended[id] == nil {
		w.ended[id] = make(chan struct{})
	}
	close(w.ended[id])
}

// apply applies a command; s.mu is held.
func (s *testPartition) apply(epoch uint64, c machine.Command) machine.Outcome {
	o, _, err := s.machine.Apply(&s.state, machine.Header{Level: feature.Level4, Epoch: epoch, Time: time.Now().UnixMilli()}, c, nil)
	if err != nil {
		panic(err)
	}
	return o
}

// testOwner is a leadership of a partition.
type testOwner struct {
	s     *testPartition
	epoch uint64
}

func (o *testOwner) Partition() uint32 { return o.s.id }

func (o *testOwner) Position(stream machine.Stream) (*machine.StreamPosition, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	return o.s.state.Position(stream)
}

func (o *testOwner) Positions(id string) (found []*machine.StreamPosition, err error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	for p := range o.s.state.Positions() {
		if p.Stream.Subscription == id {
			found = append(found, p)
		}
	}
	return found, nil
}

func (o *testOwner) Incarnations() ([]store.Incarnation, error)           { return nil, nil }
func (o *testOwner) Forget(context.Context, *machine.ForgetStreams) error { return nil }
func (o *testOwner) SetAside(ctx context.Context, c *machine.SetAside) (full bool, err error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	switch out := o.s.apply(o.epoch, c); out.Code {
	case machine.OK:
		return false, ctx.Err()
	case machine.DeadLettersFull:
		return true, nil
	default:
		return false, fmt.Errorf("outcome %v", out.Code)
	}
}

func (o *testOwner) DropDeadLetters(_ context.Context, c *machine.DropDeadLetters) error {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.apply(o.epoch, c)
	return nil
}

func (o *testOwner) DeadLetters(id string) (machine.DeadLetters, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	return o.s.state.DeadLetters(id)
}

func (o *testOwner) DeadLetter(id string, letter machine.DeadLetterID) (*machine.DeadLetter, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	return o.s.state.DeadLetter(id, letter)
}

func (o *testOwner) DeadLettersAfter(id string, after *machine.DeadLetterID, limit int) ([]*machine.DeadLetter, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	return o.s.state.DeadLettersAfter(id, after, limit), nil
}

func (o *testOwner) PutPosition(ctx context.Context, p machine.StreamPosition) error {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	switch out := o.s.apply(o.epoch, &machine.PutPosition{Position: p}); out.Code {
	case machine.OK:
		return ctx.Err()
	case machine.Stale:
		return partition.ErrNotLeader
	default:
		return fmt.Errorf("outcome %v", out.Code)
	}
}

// stored returns the stored position of a topic partition.
func (w *testCluster) stored(id, topic string, p uint32) (found machine.StreamPosition) {
	for _, s := range w.partitions {
		s.mu.Lock()
		for at := range s.state.Positions() {
			if at.Stream.Subscription == id && at.Stream.Topic == topic && at.Stream.Partition == p {
				found = *at
			}
		}
		s.mu.Unlock()
	}
	return found
}

// host is a node: an engine and the partitions that it leads.
type host struct {
	w      *testCluster
	engine *Engine
	ctx    context.Context
	leads  map[uint32]context.CancelFunc
	wg     sync.WaitGroup
}

// start starts a node.
func (w *testCluster) start() *host {
	ctx, cancel := context.WithCancel(w.t.Context())
	h := &host{w: w, ctx: ctx, leads: map[uint32]context.CancelFunc{}}
	h.engine = New(Config{
		Source: w.source, Partitions: w, Defaults: noDefaults, Dial: w.dial, Metrics: w.metrics,
		Level: func() feature.Level { return feature.Level4 }, RecordSize: 1 << 20, Memory: 8 << 20, commitInterval: w.commitInterval, Log: slog.New(slog.DiscardHandler),
	})
	h.wg.Go(func() { _ = h.engine.Run(ctx) })
	w.t.Cleanup(func() {
		cancel()
		h.wg.Wait()
	})
	return h
}

// lead makes the node lead a partition. An earlier leader does not learn of it unless the test
// notifies it.
func (h *host) lead(id uint32) {
	s := h.w.partitions[id]
	s.mu.Lock()
	s.epoch++
	o := &testOwner{s, s.epoch}
	s.apply(s.epoch, &machine.Lead{Epoch: s.epoch})
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(h.ctx)
	h.leads[id] = cancel
	h.wg.Go(func() { h.engine.lead(ctx, o) })
}

func (h *host) leadAll() *host {
	for id := range h.w.partitions {
		h.lead(uint32(id))
	}
	return h
}

// resign ends the leadership of a partition.
func (h *host) resign(id uint32) {
	if cancel := h.leads[id]; cancel != nil {
		cancel()
		delete(h.leads, id)
	}
}

// created returns the invocations of all partitions, those of one partition in order.
func (w *testCluster) created() (all []created) {
	for _, s := range w.partitions {
		s.mu.Lock()
		all = append(all, s.state.created...)
		s.mu.Unlock()
	}
	return all
}

func (w *testCluster) createdCount() int { return len(w.created()) }

// produce writes records to a topic partition and returns their offsets.
func (w *testCluster) produce(records ...*kgo.Record) []int64 {
	w.t.Helper()
	results := w.client.ProduceSync(w.t.Context(), records...)
	require.NoError(w.t, results.FirstErr())
	var offsets []int64
	for _, r := range records {
		offsets = append(offsets, r.Offset)
	}
	return offsets
}

func record(topic string, partition int32, key, value string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
	if key != "" {
		r.Key = []byte(key)
	}
	return r
}

func (w *testCluster) eventually(what string, check func() bool) {
	w.t.Helper()
	require.Eventually(w.t, check, 2*time.Minute, 5*time.Millisecond, what)
}

// status returns the status of a topic partition on a node.
func (h *host) status(topic string, p int32) subscription.PartitionStatus {
	for _, st := range h.engine.Statuses("", false) {
		for _, ps := range st.Partitions {
			if ps.Topic == topic && ps.Partition == p {
				return ps
			}
		}
	}
	return subscription.PartitionStatus{}
}

// source has the definitions of subscriptions.
type source struct {
	mu       sync.Mutex
	subs     []subscription.Subscription
	changed  chan struct{}
	clusters map[string]subscription.Cluster
	schemas  *metadata.Schemas
}

func newSource(brokers []string) *source {
	list := ""
	for i, b := range brokers {
		if i > 0 {
			list += ","
		}
		list += b
	}
	s := &source{changed: make(chan struct{}), clusters: map[string]subscription.Cluster{
		"main": {Name: "main", Properties: map[string]string{"bootstrap.servers": list, "fetch.wait.max.ms": "50", "retry.backoff.ms": "20"}, Version: 1},
	}}
	s.register("Greeter/greet", "Orders/add", "Flow/run")
	return s
}

// register makes handlers known.
func (s *source) register(handlers ...string) {
	kinds := map[string]struct {
		kind metadata.ServiceType
		typ  target.Type
	}{
		"Greeter": {metadata.PlainService, target.Service}, "Orders": {metadata.VirtualObject, target.ObjectExclusive}, "Flow": {metadata.Workflow, target.WorkflowRun},
		"Late": {metadata.PlainService, target.Service},
	}
	shared := map[string]target.Type{"Orders/peek": target.ObjectShared, "Flow/watch": target.WorkflowShared}
	schemas := &metadata.Schemas{Services: map[string]*metadata.Service{}}
	for _, h := range handlers {
		i := slices.Index([]byte(h), '/')
		name, handler := h[:i], &metadata.Handler{Name: h[i+1:], Type: kinds[h[:i]].typ}
		if typ, ok := shared[h]; ok {
			handler.Type = typ
		}
		if schemas.Services[name] == nil {
			schemas.Services[name] = &metadata.Service{Name: name, Type: kinds[name].kind}
		}
		schemas.Services[name].Handlers = append(schemas.Services[name].Handlers, handler)
	}
	s.mu.Lock()
	s.schemas = schemas
	s.mu.Unlock()
}

func (s *source) Schemas() *metadata.Schemas {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schemas
}

func (s *source) Subscriptions() ([]subscription.Subscription, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subs, s.changed
}

func (s *source) ConfirmedSubscriptions(context.Context) ([]subscription.Subscription, error) {
	subs, _ := s.Subscriptions()
	return subs, nil
}

func (s *source) KafkaCluster(name string) (subscription.Cluster, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clusters[name]
	return c, ok
}

// setCluster replaces a cluster.
func (s *source) setCluster(c subscription.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clusters[c.Name] = c
	close(s.changed)
	s.changed = make(chan struct{})
}

// change replaces a subscription, or adds it.
func (s *source) change(id string, change func(*subscription.Subscription)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = slices.Clone(s.subs)
	at := slices.IndexFunc(s.subs, func(sub subscription.Subscription) bool { return sub.ID == id })
	if at < 0 {
		at = len(s.subs)
		s.subs = append(s.subs, subscription.Subscription{ID: id, Incarnation: 1})
	}
	change(&s.subs[at])
	s.subs[at].Version++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *source) ResolveSubscription(_ context.Context, id string, incarnation uint64, offsets []subscription.TopicStart) (sub subscription.Subscription, err error) {
	s.change(id, func(sub *subscription.Subscription) {
		if sub.Incarnation == incarnation && !sub.Resolved {
			sub.Offsets, sub.Resolved = offsets, true
		}
	})
	return sub, nil
}

// remove removes a subscription that has drained.
func (s *source) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = slices.DeleteFunc(slices.Clone(s.subs), func(sub subscription.Subscription) bool { return sub.ID == id })
	close(s.changed)
	s.changed = make(chan struct{})
}

// subscribe adds a subscription that starts at the beginning.
func (w *testCluster) subscribe(id, sink string, topics []string, more ...func(*subscription.Subscription)) {
	to, err := subscription.ParseSink("service://" + sink)
	require.NoError(w.t, err)
	w.source.change(id, func(sub *subscription.Subscription) {
		sub.Source = subscription.Source{Cluster: "main", Topics: topics}
		sub.Sink = to
		sub.Start = subscription.Start{Kind: subscription.StartEarliest}
		sub.Options = subscription.Options{AllHeaders: true, MaxInFlight: 100}
		for _, m := range more {
			m(sub)
		}
	})
}

// topic creates a topic.
func (w *testCluster) topic(name string, partitions int32) {
	require.NoError(w.t, w.kafka.CreateTopic(name, partitions, nil))
}

// grow adds partitions to a topic.
func (w *testCluster) grow(name string, partitions int) {
	w.t.Helper()
	_, err := kadm.NewClient(w.client).UpdatePartitions(w.t.Context(), partitions, name)
	require.NoError(w.t, err)
}

// requireOnce checks that exactly these records of a topic became invocations: each once, and
// in order for each key.
func (w *testCluster) requireOnce(topic string, want map[int32][]int64) {
	w.t.Helper()
	got := map[int32][]int64{}
	lastOfKey := map[string]int64{}
	for _, c := range w.created() {
		if c.headers[subscription.TopicHeader] != topic {
			continue
		}
		p, _ := strconv.ParseInt(c.headers[subscription.PartHeader], 10, 32)
		offset, _ := strconv.ParseInt(c.headers[subscription.OffsetHeader], 10, 64)
		got[int32(p)] = append(got[int32(p)], offset)
		if c.target.Key != "" {
			key := c.target.Key + "/" + c.headers[subscription.PartHeader]
			last, seen := lastOfKey[key]
			require.True(w.t, !seen || last < offset, "record %d of key %s after %d", offset, key, last)
			lastOfKey[key] = offset
		}
	}
	for p := range got {
		slices.Sort(got[p])
	}
	require.Equal(w.t, want, got)
}
