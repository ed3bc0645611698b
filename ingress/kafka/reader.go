package kafka

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
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
	log     *slog.Logger

	wake   chan struct{} // has capacity 1
	cancel context.CancelFunc
	done   chan struct{}

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

// topicInfo is what the broker said about a topic.
type topicInfo struct {
	id         [16]byte
	partitions int32
	starts     map[int32]int64
	ends       map[int32]int64
}

// assignment tells the client to fetch a topic partition for a stream, or not to if that is
// nil.
type assignment struct {
	at     topicPartition
	offset kgo.Offset
	stream *stream
}

func newReader(e *Engine, sub subscription.Subscription, cluster subscription.Cluster, known bool) *reader {
	return &reader{
		e: e, sub: sub, cluster: cluster, known: known, log: e.cfg.Log.With("subscription_id", sub.ID),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		state: subscription.Starting, since: time.Now(),
		streams: map[topicPartition]*stream{}, mirror: map[topicPartition]machine.StreamPosition{},
	}
}

// differs reports whether a reader with these definitions would behave differently.
func (r *reader) differs(sub *subscription.Subscription, cluster *subscription.Cluster, known bool) bool {
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
	streams := make([]*stream, 0, len(r.streams))
	for _, s := range r.streams {
		streams = append(streams, s)
	}
	r.mu.Unlock()
	for _, s := range streams {
		s.finish()
	}
	for _, s := range streams {
		<-s.done
	}
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
		timer := time.NewTimer(delay)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// round makes sure that each topic partition that belongs to this node is read.
func (r *reader) round(ctx context.Context, running *sync.WaitGroup) error {
	switch {
	case r.e.cfg.Level() < feature.Level4:
		return fault(subscription.Failed, "", "subscriptions need feature level 4: upgrade all nodes, see `platform cluster status`")
	case r.sub.Draining:
		return r.drain(ctx)
	case r.sub.Paused != nil:
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
	topics, err := r.discover(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.topics = topics
	r.mu.Unlock()
	r.startStreams(ctx, topics, running)
	r.updateEnds(topics)
	r.commitMirror(ctx)
	return missing(&r.sub, topics)
}

// missing returns an error if there is nothing to read.
func missing(sub *subscription.Subscription, topics map[string]topicInfo) error {
	var names []string
	for _, t := range sub.Topics {
		if _, ok := topics[t]; !ok {
			names = append(names, t)
		}
	}
	if len(names) > 0 {
		return fault(subscription.Failed, subscription.TopicMissing, "the broker does not know the topic %s", names[0])
	}
	return nil
}

// drain removes a deleted subscription once its readers have had time to finish.
func (r *reader) drain(ctx context.Context) error {
	if r.e.coordinates(r.sub.ID) {
		r.setState(subscription.Draining, "", "")
		select {
		case <-time.After(drainTimeout):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := r.e.cfg.Source.RemoveSubscription(ctx, r.sub.ID); err != nil {
			r.log.Debug("could not remove a drained subscription", "err", err)
		}
	}
	return fault(subscription.Draining, "", "")
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
	client, err := r.e.newClient(&settings)
	if err != nil {
		return fault(subscription.Failed, subscription.InvalidProperties, "%v", err)
	}
	r.kafka, r.admin = client, kadm.NewClient(client)
	r.admin.SetTimeoutMillis(5000)
	running.Go(func() { r.poll(ctx, client) })
	return nil
}

// newClient returns a client, which connects when it is used.
func (e *Engine) newClient(settings *subscription.Client, more ...kgo.Opt) (*kgo.Client, error) {
	opts, err := options(settings, e.cfg.Dial)
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
	streams := make([]*stream, 0, len(r.streams))
	for _, s := range r.streams {
		streams = append(streams, s)
	}
	r.mu.Unlock()
	for _, s := range streams {
		s.finish()
		<-s.done
	}
}

// requestTimeout bounds a request to brokers.
const requestTimeout = 15 * time.Second

// discover returns the topics of the subscription with their partitions.
func (r *reader) discover(ctx context.Context) (map[string]topicInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return listTopics(ctx, r.admin, &r.sub)
}

// listTopics returns the existing topics of a source with their partitions and offsets.
func listTopics(ctx context.Context, admin *kadm.Client, sub *subscription.Subscription) (map[string]topicInfo, error) {
	names := sub.Topics
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, requestFault(err)
	}
	matches := sub.Matcher()
	found := map[string]topicInfo{}
	var list []string
	for name, d := range details {
		if !matches(name) || errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if d.Err != nil {
			return nil, brokerFault(d.Err)
		}
		found[name] = topicInfo{id: d.ID, partitions: int32(len(d.Partitions)), starts: map[int32]int64{}, ends: map[int32]int64{}} //nolint:gosec // few
		list = append(list, name)
	}
	if len(list) == 0 {
		return found, nil
	}
	slices.Sort(list)
	starts, err := admin.ListStartOffsets(ctx, list...)
	if err != nil {
		return nil, requestFault(err)
	}
	ends, err := admin.ListEndOffsets(ctx, list...)
	if err != nil {
		return nil, requestFault(err)
	}
	starts.Each(func(o kadm.ListedOffset) {
		if t, ok := found[o.Topic]; ok && o.Err == nil {
			t.starts[o.Partition] = o.Offset
		}
	})
	ends.Each(func(o kadm.ListedOffset) {
		if t, ok := found[o.Topic]; ok && o.Err == nil {
			t.ends[o.Partition] = o.Offset
		}
	})
	return found, nil
}

// requestFault classifies an error of a request.
func requestFault(err error) error {
	var auth *kadm.AuthError
	var shards *kadm.ShardErrors
	if errors.As(err, &auth) {
		return fault(subscription.Failed, subscription.NotAuthorized, "%v", err)
	}
	if errors.As(err, &shards) && len(shards.Errs) > 0 {
		return brokerFault(shards.Errs[0].Err)
	}
	return brokerFault(err)
}

// startStreams starts a stream for each topic partition that belongs to this node and has
// none.
func (r *reader) startStreams(ctx context.Context, topics map[string]topicInfo, running *sync.WaitGroup) {
	for name, info := range topics {
		for p := range info.partitions {
			start, listed := info.starts[p]
			if !listed {
				continue
			}
			at := topicPartition{name, p}
			r.mu.Lock()
			current := r.streams[at]
			r.mu.Unlock()
			if current != nil {
				select {
				case <-current.done:
				default:
					if current.id.TopicID == info.id {
						continue
					}
					// The stream of the earlier topic must not mistake records of this one.
					current.finish()
					<-current.done
				}
			}
			o := r.e.owner(r.e.ownerOf(r.sub.ID, name, p))
			if o == nil {
				r.mu.Lock()
				delete(r.streams, at)
				r.mu.Unlock()
				continue
			}
			id := machine.Stream{Subscription: r.sub.ID, Incarnation: r.sub.Incarnation, Topic: name, TopicID: info.id, Partition: uint32(p)} //nolint:gosec // not negative
			s := newStream(r, o, at, id, start)
			r.mu.Lock()
			stopping := r.stopping
			if !stopping {
				r.streams[at] = s
			}
			r.mu.Unlock()
			if stopping {
				o.streams.Done()
				return
			}
			lives, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(o.ctx, cancel)
			running.Go(func() {
				defer o.streams.Done()
				defer cancel()
				defer stop()
				s.run(lives)
			})
		}
	}
}

// updateEnds tells streams where their topic partitions end.
func (r *reader) updateEnds(topics map[string]topicInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, s := range r.streams {
		if end, ok := topics[at.topic].ends[at.partition]; ok {
			s.mu.Lock()
			s.status.End = max(end, s.status.Position)
			s.mu.Unlock()
		}
	}
}

// startID returns the ID that a topic had when the start of the incarnation was resolved.
func (r *reader) startID(topic string) [16]byte {
	for i := range r.sub.Offsets {
		if r.sub.Offsets[i].Topic == topic {
			return r.sub.Offsets[i].ID
		}
	}
	return [16]byte{}
}

// checkRange returns an error if an offset is not within a topic partition.
func (r *reader) checkRange(ctx context.Context, at topicPartition, next int64, epoch int32) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r.mu.Lock()
	info, admin := r.topics[at.topic], r.admin
	r.mu.Unlock()
	start, end := info.starts[at.partition], info.ends[at.partition]
	if next < start || next > end { // the answer may be outdated
		starts, err := admin.ListStartOffsets(ctx, at.topic)
		if err != nil {
			return 0, requestFault(err)
		}
		ends, err := admin.ListEndOffsets(ctx, at.topic)
		if err != nil {
			return 0, requestFault(err)
		}
		first, ok1 := starts.Lookup(at.topic, at.partition)
		last, ok2 := ends.Lookup(at.topic, at.partition)
		if !ok1 || !ok2 || first.Err != nil || last.Err != nil {
			return 0, fault(subscription.Failed, subscription.BrokerUnreachable, "the broker does not tell where the topic partition begins and ends: %v", errors.Join(first.Err, last.Err))
		}
		start, end = first.Offset, last.Offset
	}
	switch {
	case next < start:
		return 0, expired(next, start)
	case next > end:
		return 0, truncated("the next record is at offset %d, but the topic partition ends at %d", next, end)
	}
	return next, nil
}
