package kafka

import (
	"context"
	"errors"
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
}

// requestTimeout bounds a request to brokers.
const requestTimeout = 15 * time.Second

// listTopics returns the existing topics of a source with their partitions.
func listTopics(ctx context.Context, admin *kadm.Client, sub *subscription.Subscription) (map[string]topicInfo, error) {
	details, err := admin.ListTopics(ctx, sub.Topics...)
	if err != nil {
		return nil, requestFault(err)
	}
	matches := sub.Matcher()
	found := map[string]topicInfo{}
	for name, d := range details {
		if !matches(name) || errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if d.Err != nil {
			return nil, brokerFault(d.Err)
		}
		found[name] = topicInfo{id: d.ID, partitions: int32(len(d.Partitions)), starts: map[int32]int64{}, ends: map[int32]int64{}} //nolint:gosec // few
	}
	return found, nil
}

// listOffsets adds where the partitions of the named topics begin and end. Offsets that brokers do
// not report are omitted.
func listOffsets(ctx context.Context, admin *kadm.Client, topics map[string]topicInfo, names []string) error {
	if len(names) == 0 {
		return nil // it would mean all
	}
	starts, err := admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return requestFault(err)
	}
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err != nil {
		return requestFault(err)
	}
	starts.Each(func(o kadm.ListedOffset) {
		if t, ok := topics[o.Topic]; ok && o.Err == nil {
			t.starts[o.Partition] = o.Offset
		}
	})
	ends.Each(func(o kadm.ListedOffset) {
		if t, ok := topics[o.Topic]; ok && o.Err == nil {
			t.ends[o.Partition] = o.Offset
		}
	})
	return nil
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
			return 0, fault(subscription.Failed, subscription.BrokerUnreachable, "the broker does not report where the topic partition begins and ends: %v", errors.Join(first.Err, last.Err))
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
