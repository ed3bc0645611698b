package kafka

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/errcode"
	"platform/internal/subscription"
)

// resolve determines and stores where the incarnation starts.
func (r *reader) resolve(ctx context.Context) error {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	offsets, _, err := resolveStart(request, r.admin, &r.sub, &r.client)
	if err != nil {
		return err
	}
	if _, err := r.e.cfg.Source.ResolveSubscription(ctx, r.sub.ID, r.sub.Incarnation, offsets); err != nil {
		return fault(subscription.Failed, "", "where the subscription starts could not be stored: %v", err)
	}
	return fault(subscription.Starting, "", "starting") // the change replaces this reader
}

// attemptTimeout bounds how long the client retries by itself: its last error is lost when ctx ends.
const attemptTimeout = 2 * time.Second

// ResolveStart requests the start of a subscription from the brokers, again while they elect leaders
// or are busy. Users can act on the error, which is a *subscription.BrokerError if it is about the
// brokers. With the reason TopicMissing, it comes with the start in the other topics.
func (e *Engine) ResolveStart(ctx context.Context, sub *subscription.Subscription, cluster *subscription.Cluster) ([]subscription.TopicStart, error) {
	settings, err := subscription.ClientOf(cluster, sub)
	if err != nil {
		return nil, err
	}
	var reach reachability
	client, err := e.newClient(&settings, kgo.WithHooks(&reach), kgo.RetryTimeout(attemptTimeout), kgo.MetadataMinAge(minRetry))
	if err != nil {
		return nil, errcode.New(errcode.META0009, "the properties of the Kafka client: %v", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	var busy error
	for wait := minRetry; ; wait = min(2*wait, time.Second) {
		starts, absent, err := resolveStart(ctx, admin, sub, &settings)
		switch {
		case err == nil && absent != nil:
			return starts, &subscription.BrokerError{Reason: subscription.TopicMissing, Message: absent.Error()}
		case err == nil:
			return starts, nil
		case busy != nil && ctx.Err() != nil: // it says more than that the time is over
			return nil, busy
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return nil, reach.late()
		}
		var f *faultError
		if !errors.As(err, &f) {
			return nil, err
		}
		err = &subscription.BrokerError{Reason: f.reason, Message: f.message}
		if f.reason != subscription.BrokerUnavailable {
			return nil, err
		}
		busy = err
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, busy
		}
	}
}

// resolveStart returns the offsets at which an incarnation starts. Topics that do not exist yet are
// left out: they are read from their beginning, since all their records are later. absent is about
// one of those that the subscription names.
func resolveStart(ctx context.Context, admin *kadm.Client, sub *subscription.Subscription, settings *subscription.Client) (found []subscription.TopicStart, absent, err error) {
	topics, problem, err := listTopics(ctx, admin, sub)
	if err := cmp.Or(err, problem); err != nil {
		return nil, nil, err
	}
	absent = missing(sub, topics)
	if absent != nil && sub.Start.Kind == subscription.StartOffsets { // of a topic that does not exist
		return nil, nil, absent
	}
	found, err = startOf(ctx, admin, sub, settings, topics)
	return found, absent, err
}

// startOf returns the offsets at which an incarnation starts in existing topics.
func startOf(ctx context.Context, admin *kadm.Client, sub *subscription.Subscription, settings *subscription.Client, topics map[string]topicInfo) ([]subscription.TopicStart, error) {
	names := slices.Sorted(maps.Keys(topics))
	if len(names) == 0 {
		return nil, nil
	}
	if err := listOffsets(ctx, admin, topics, names); err != nil {
		return nil, requestFault(err)
	}
	if err := checkOffsets(sub.Start.Offsets, topics); err != nil {
		return nil, err
	}
	special, err := specialOffsets(ctx, admin, sub, settings.Group, topics, names)
	if err != nil {
		return nil, err
	}
	committed, err := committedEnds(ctx, admin, settings, names)
	if err != nil {
		return nil, err
	}
	var found []subscription.TopicStart
	for _, name := range names {
		info := topics[name]
		t := subscription.TopicStart{ID: info.id}
		t.Topic = name
		for p := range info.partitions {
			start, known1 := info.starts[p]
			end, known2 := info.ends[p]
			if !known1 || !known2 { // it must not start somewhere else
				return nil, notListed(topicPartition{name, p}, info, nil)
			}
			offset, ok := special[name][p]
			if !ok {
				offset = min(end, committed.or(name, p, end))
				if sub.Start.Kind == subscription.StartEarliest || sub.Start.Otherwise == subscription.StartEarliest {
					offset = start
				}
			}
			t.Offsets = append(t.Offsets, subscription.PartitionOffset{Partition: p, Offset: offset})
		}
		found = append(found, t)
	}
	return found, nil
}

// checkOffsets returns an error with code META0009 if an offset that the start names is not one of
// its topic partition.
func checkOffsets(offsets []subscription.TopicOffsets, topics map[string]topicInfo) error {
	for _, t := range offsets {
		info, exists := topics[t.Topic]
		for _, o := range t.Offsets {
			if !exists || o.Partition >= info.partitions {
				return errcode.New(errcode.META0009, "start: there is no topic partition %s/%d; the topic has %d partitions, numbered from 0", t.Topic, o.Partition, info.partitions).In("start")
			}
			first, known1 := info.starts[o.Partition]
			end, known2 := info.ends[o.Partition]
			if known1 && known2 && (o.Offset < first || o.Offset > end) {
				return errcode.New(errcode.META0009, "start: %s/%d has no offset %d; its records begin at %d, and the next one will be at %d", t.Topic, o.Partition, o.Offset, first, end).In("start")
			}
		}
	}
	return nil
}

// ends are offsets at which topic partitions end.
type ends kadm.ListedOffsets

func (e ends) or(topic string, p int32, otherwise int64) int64 {
	if o, ok := e[topic][p]; ok {
		return o.Offset
	}
	return otherwise
}

// committedEnds returns where the transactions begin that are not finished: their records become
// visible later. Without such isolation there is none.
func committedEnds(ctx context.Context, admin *kadm.Client, settings *subscription.Client, topics []string) (ends, error) {
	if settings.ReadUncommitted {
		return nil, nil
	}
	listed, err := admin.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return nil, requestFault(err)
	}
	if err := listedError(listed); err != nil {
		return nil, err
	}
	return ends(listed), nil
}

// listedError returns an error about one of the topic partitions, all of which are known to exist.
func listedError(listed kadm.ListedOffsets) (found error) {
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err != nil && found == nil {
			found = notListed(topicPartition{o.Topic, o.Partition}, topicInfo{errs: map[int32]error{o.Partition: o.Err}}, nil)
		}
	})
	return found
}

// specialOffsets returns the offsets that the start names, or that belong to the time or the
// group it names.
func specialOffsets(ctx context.Context, admin *kadm.Client, sub *subscription.Subscription, group string, topics map[string]topicInfo, names []string) (map[string]map[int32]int64, error) {
	found := map[string]map[int32]int64{}
	add := func(topic string, partition int32, offset int64) {
		if found[topic] == nil {
			found[topic] = map[int32]int64{}
		}
		found[topic][partition] = offset
	}
	switch sub.Start.Kind {
	case subscription.StartTimestamp:
		listed, err := admin.ListOffsetsAfterMilli(ctx, sub.Start.Timestamp.UnixMilli(), names...)
		if err != nil {
			return nil, requestFault(err)
		}
		if err := listedError(listed); err != nil {
			return nil, err
		}
		listed.Each(func(o kadm.ListedOffset) {
			offset := o.Offset
			if o.Timestamp < 0 { // no record was that late; this is the end after that, and one that is may have been written in between
				offset = min(offset, topics[o.Topic].ends[o.Partition])
			}
			if offset >= 0 {
				add(o.Topic, o.Partition, offset)
			}
		})
	case subscription.StartOffsets:
		for _, t := range sub.Start.Offsets {
			for _, o := range t.Offsets {
				add(t.Topic, o.Partition, o.Offset)
			}
		}
	case subscription.StartGroup:
		committed, err := admin.FetchOffsets(ctx, group)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return found, nil
		}
		if err != nil {
			return nil, requestFault(err)
		}
		var failed error
		committed.Each(func(o kadm.OffsetResponse) {
			if o.Err != nil && slices.Contains(names, o.Topic) {
				failed = o.Err
			}
			if o.Err == nil && o.At >= 0 && slices.Contains(names, o.Topic) {
				add(o.Topic, o.Partition, o.At)
			}
		})
		if failed != nil {
			return nil, brokerFault(failed)
		}
	}
	return found, nil
}
