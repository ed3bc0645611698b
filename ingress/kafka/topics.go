package kafka

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"platform/internal/subscription"
)

// topicInfo is the broker's information about a topic.
type topicInfo struct {
	id         [16]byte
	partitions int32
	starts     map[int32]int64
	ends       map[int32]int64
	errs       map[int32]error // why starts or ends lacks a topic partition
	details    kadm.PartitionDetails
}

func newTopicInfo() topicInfo {
	return topicInfo{starts: map[int32]int64{}, ends: map[int32]int64{}, errs: map[int32]error{}}
}

// requestTimeout bounds a request to brokers.
const requestTimeout = 15 * time.Second

// listTopics returns the existing topics of a source with their partitions. problem is about one that
// is left out, for example because the client may not read it.
func listTopics(ctx context.Context, admin *kadm.Client, sub *subscription.Subscription) (found map[string]topicInfo, problem, err error) {
	details, err := admin.ListTopics(ctx, sub.Topics...)
	var auth *kadm.AuthError
	if errors.As(err, &auth) && len(sub.Topics) > 1 { // it does not say which of them
		details, problem, err = listEach(ctx, admin, sub.Topics)
	}
	if err != nil {
		return nil, nil, requestFault(err)
	}
	matches := sub.Matcher()
	found = map[string]topicInfo{}
	for name, d := range details {
		if !matches(name) || errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if d.Err != nil {
			problem = ofTopic(name, brokerFault(d.Err))
			continue
		}
		info := newTopicInfo()
		info.id, info.partitions, info.details = d.ID, int32(len(d.Partitions)), d.Partitions //nolint:gosec // few
		found[name] = info
	}
	return found, problem, nil
}

// listEach returns topics, except those that the client may not read, about one of which problem is.
func listEach(ctx context.Context, admin *kadm.Client, names []string) (found kadm.TopicDetails, problem, err error) {
	found = kadm.TopicDetails{}
	for _, name := range names {
		one, err := admin.ListTopics(ctx, name)
		var auth *kadm.AuthError
		switch {
		case errors.As(err, &auth):
			problem = ofTopic(name, requestFault(err))
		case err != nil:
			return nil, nil, err
		}
		maps.Copy(found, one)
	}
	return found, problem, nil
}

// ofTopic adds the name of a topic to a fault.
func ofTopic(name string, err error) error {
	f := asFault(err)
	return fault(f.state, f.reason, "the topic %s: %s", name, f.message)
}

// listOffsets adds where the partitions of the named topics begin and end. Offsets that brokers do
// not report are omitted. The error may be about some of the brokers: see partial.
func listOffsets(ctx context.Context, admin *kadm.Client, topics map[string]topicInfo, names []string) error {
	if len(names) == 0 {
		return nil // it would mean all
	}
	var starts, ends kadm.ListedOffsets
	var requests sync.WaitGroup // concurrent, since a broker that does not respond delays both
	var errStarts, errEnds error
	requests.Go(func() { starts, errStarts = admin.ListStartOffsets(ctx, names...) })
	requests.Go(func() { ends, errEnds = admin.ListEndOffsets(ctx, names...) })
	requests.Wait()
	starts.Each(func(o kadm.ListedOffset) {
		if t, ok := topics[o.Topic]; ok {
			t.add(t.starts, &o)
		}
	})
	ends.Each(func(o kadm.ListedOffset) {
		if t, ok := topics[o.Topic]; ok {
			t.add(t.ends, &o)
		}
	})
	if errStarts == nil || errEnds != nil && !partial(errEnds) {
		return errEnds
	}
	return errStarts
}

// add adds an offset to starts or ends, or the reason why it is missing.
func (t *topicInfo) add(to map[int32]int64, o *kadm.ListedOffset) {
	if o.Err != nil {
		t.errs[o.Partition] = o.Err
		return
	}
	to[o.Partition] = o.Offset
}

// partial reports whether an error is only about some of the brokers that a request concerns.
func partial(err error) bool {
	var shards *kadm.ShardErrors
	return errors.As(err, &shards) && !shards.AllFailed
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

// notListed returns the error about a topic partition whose broker does not report its offsets. cause
// is the error of the request, which may be about others.
func notListed(at topicPartition, info topicInfo, cause error) error {
	const text = "the brokers do not report where %s/%d begins and ends: %s"
	f := &faultError{subscription.Failed, subscription.BrokerUnavailable, "its leader has changed, or it has none"}
	switch err := info.errs[at.partition]; {
	case errors.Is(err, kerr.UnknownTopicOrPartition): // the broker does not know it yet, or no longer leads it
	case err != nil:
		f = asFault(brokerFault(err))
	case cause != nil:
		f = asFault(requestFault(cause))
	}
	return fault(f.state, f.reason, text, at.topic, at.partition, f.message)
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
		fresh := map[string]topicInfo{at.topic: newTopicInfo()}
		err := listOffsets(ctx, admin, fresh, []string{at.topic})
		if err != nil && !partial(err) {
			return 0, requestFault(err)
		}
		var ok1, ok2 bool
		start, ok1 = fresh[at.topic].starts[at.partition]
		end, ok2 = fresh[at.topic].ends[at.partition]
		if !ok1 || !ok2 {
			return 0, notListed(at, fresh[at.topic], err)
		}
	}
	switch {
	case next < start:
		return 0, expired(next, start)
	case next > end:
		return 0, truncated("the next record is at offset %d, but the topic partition ends at %d", next, end)
	}
	return next, nil
}
