package kafka

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/feature"
	"platform/internal/subscription"
	"platform/partition/machine"
)

// reader reads the topic partitions of one subscription that belong to this node. A change of
// the subscription or of its cluster replaces it.
type reader struct {
	e       *Engine
	sub     subscription.Subscription
	cluster subscription.Cluster
	known   bool // the cluster exists
	client  subscription.Client
	reach   reachability
	log     *slog.Logger

	wake   chan struct{} // has capacity 1
	cancel context.CancelFunc
	done   chan struct{}
	commit chan struct{} // semaphore of commits for the consumer group, so that they arrive in order

	mu        sync.Mutex // covers the fields below
	state     subscription.State
	reason    subscription.Reason
	message   string
	since     time.Time
	streams   map[topicPartition]*stream
	stopping  bool        // no more streams are started
	kafka     *kgo.Client // nil until it is open
	admin     *kadm.Client
	topics    map[string]topicInfo
	pending   []assignment       // to be carried out between polls
	interrupt context.CancelFunc // ends the current poll; nil if there is none
	mirror    map[topicPartition]machine.StreamPosition
	warning   string // of the mirror
}

// assignment tells the client to fetch a topic partition for a stream, or not to if that is
// nil.
type assignment struct {
	at      topicPartition
	offset  kgo.Offset
	stream  *stream
	session uint64 // of the stream
}

func newReader(e *Engine, sub subscription.Subscription, cluster subscription.Cluster, known bool) *reader {
	return &reader{
		e: e, sub: sub, cluster: cluster, known: known, log: e.cfg.Log.With("subscription_id", sub.ID),
		wake: make(chan struct{}, 1), done: make(chan struct{}), commit: make(chan struct{}, 1),
		state: subscription.Starting, since: time.Now(),
		streams: map[topicPartition]*stream{}, mirror: map[topicPartition]machine.StreamPosition{},
	}
}

// differs reports whether a reader with these definitions would behave differently.
func (r *reader) differs(sub *subscription.Subscription, cluster *subscription.Cluster, known bool) bool {
	if (sub.Unreadable == nil) != (r.sub.Unreadable == nil) || (cluster.Unreadable == nil) != (r.cluster.Unreadable == nil) {
		return true // the keys of this node have changed
	}
	return sub.Version != r.sub.Version || known != r.known || cluster.Version != r.cluster.Version || cluster.Static != r.cluster.Static
}

func (r *reader) start(ctx context.Context) {
	ctx, r.cancel = context.WithCancel(ctx)
	go r.run(ctx)
}

// stop ends the reader once what is in flight is stored, or soon after.
func (r *reader) stop() {
	r.mu.Lock()
	r.stopping = true
	streams := slices.Collect(maps.Values(r.streams))
	r.mu.Unlock()
	for _, s := range streams {
		s.finish()
	}
	for _, s := range streams {
		<-s.done
	}
	r.commitLast()
	r.cancel()
	<-r.done
}

func (r *reader) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reader) setState(state subscription.State, reason subscription.Reason, message string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = r.state != state || r.reason != reason
	if changed {
		r.since = time.Now()
	}
	r.state, r.reason, r.message = state, reason, message
	return changed
}

// discoverDelay is the time between requests for the partitions of topics and their ends.
const discoverDelay = 15 * time.Second

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) {
	defer close(r.done)
	var running sync.WaitGroup
	defer func() {
		r.finishAll()
		r.closeClient()
		running.Wait()
	}()
	running.Go(func() { r.commitRegularly(ctx) })
	wait := minRetry
	for {
		err := r.round(ctx, &running)
		if ctx.Err() != nil {
			return
		}
		delay := discoverDelay
		if err != nil {
			f := asFault(err)
			if r.setState(f.state, f.reason, f.message) && f.state == subscription.Failed {
				r.log.Warn("subscription cannot be read", "reason", string(f.reason), "err", f.message)
			}
			if f.state == subscription.Failed || f.state == subscription.Starting {
				delay, wait = wait, min(2*wait, maxRetry)
			}
		} else {
			wait = minRetry
			r.setState(subscription.Running, "", "")
		}
		r.await(ctx, delay)
	}
}

// await returns when the delay has passed, the reader is notified or ctx ends.
func (r *reader) await(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-r.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// round ensures that each topic partition that belongs to this node is read.
func (r *reader) round(ctx context.Context, running *sync.WaitGroup) error {
	switch {
	case r.e.cfg.Level() < feature.Level4:
		return fault(subscription.Failed, "", "subscriptions need feature level 4: upgrade all nodes, see `platform cluster status`")
	case r.sub.Draining:
		return fault(subscription.Draining, "", "")
	case r.sub.Paused != nil:
		if r.known && r.open(ctx, running) == nil {
			_, _, _ = r.discover(ctx) // only to show the lag
		}
		return fault(subscription.Paused, "", "%s", r.sub.Paused.Reason)
	case !r.known:
		return fault(subscription.Orphaned, "", "the Kafka cluster %s does not exist", r.sub.Cluster)
	}
	if err := r.open(ctx, running); err != nil {
		return err
	}
	if !r.sub.Resolved {
		if !r.e.coordinates(r.sub.ID) {
			return fault(subscription.Starting, "", "another node finds out where to start")
		}
		return r.resolve(ctx)
	}
	topics, problem, err := r.discover(ctx)
	if err != nil {
		r.mu.Lock()
		topics = r.topics // as they were last
		r.mu.Unlock()
		_ = r.reportUnreachable(topics)
		return err
	}
	if problem == nil && r.sub.Pattern != "" {
		r.endDeleted(topics)
	}
	r.startStreams(ctx, topics, running)
	r.updateEnds(topics)
	unreachable := r.reportUnreachable(topics)
	return cmp.Or(problem, missing(&r.sub, topics), unreachable)
}

// discover returns the topics of the subscription. It requests offsets only of topic partitions
// that are not fetched: fetches report the ends of the others. problem is about some of the topic
// partitions; the others can be read.
func (r *reader) discover(ctx context.Context) (topics map[string]topicInfo, problem, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	topics, problem, err = listTopics(ctx, r.admin, &r.sub)
	if err != nil {
		return nil, nil, err
	}
	names := r.unfetched(topics)
	failed := listOffsets(ctx, r.admin, topics, names)
	if failed != nil && !partial(failed) {
		return nil, nil, requestFault(failed)
	}
	r.mu.Lock()
	r.topics = topics
	r.mu.Unlock()
	return topics, cmp.Or(problem, r.unlisted(topics, names, failed)), nil
}

// unlisted returns an error if topic partitions of the named topics belong to this node, but their
// offsets are not known.
func (r *reader) unlisted(topics map[string]topicInfo, names []string, cause error) error {
	for _, name := range names {
		for p := range topics[name].partitions {
			if _, ok := topics[name].starts[p]; !ok && r.e.leads(r.e.ownerOf(r.sub.ID, name, p)) {
				return notListed(topicPartition{name, p}, topics[name], cause)
			}
		}
	}
	return nil
}

// open opens the client and starts to poll.
func (r *reader) open(ctx context.Context, running *sync.WaitGroup) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kafka != nil {
		return nil
	}
	settings, err := subscription.ClientOf(&r.cluster, &r.sub)
	if err != nil {
		return fault(subscription.Failed, subscription.InvalidProperties, "%v", err)
	}
	r.client = settings
	inflater, err := newInflater(&r.e.inflated, r.e.memory.limit)
	if err != nil {
		return err
	}
	client, err := r.e.newClient(&settings, kgo.WithHooks(&r.reach), kgo.WithDecompressor(inflater))
	if err != nil {
		return fault(subscription.Failed, subscription.InvalidProperties, "%v", err)
	}
	r.kafka, r.admin = client, kadm.NewClient(client)
	r.admin.SetTimeoutMillis(5000)
	running.Go(func() {
		defer inflater.polled()
		r.poll(ctx, client, inflater)
	})
	return nil
}

// newClient returns a client, which connects when it is used.
func (e *Engine) newClient(settings *subscription.Client, more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := options(settings, e.cfg.Dial, e.fetchLimit())
	if err != nil {
		return nil, err
	}
	return kgo.NewClient(append(opts, more...)...)
}

func (r *reader) closeClient() {
	r.mu.Lock()
	client := r.kafka
	r.mu.Unlock()
	if client != nil {
		client.Close()
	}
}

// finishAll ends the streams.
func (r *reader) finishAll() {
	r.mu.Lock()
	streams := slices.Collect(maps.Values(r.streams))
	r.mu.Unlock()
	for _, s := range streams {
		s.finish()
		<-s.done
	}
}
