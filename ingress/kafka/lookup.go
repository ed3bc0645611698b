package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// maxLookups is the number of records that are read concurrently for operators. Each takes the memory
// of a batch of records.
const maxLookups = 2

// Record returns a record for operators: the blocked one, or another one that the broker has. The
// error can be subscription.ErrNotRead if the topic partition belongs to another node, or ErrNoRecord.
func (e *Engine) Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error) {
	r := e.reader(id.Subscription)
	if r == nil || !e.leads(e.ownerOf(id.Subscription, id.Topic, id.Partition)) {
		return subscription.Record{}, subscription.ErrNotRead
	}
	if s := e.stream(id); s != nil {
		s.mu.Lock()
		if b := s.blocked; b != nil && b.rec.Offset == id.Offset && b.whole {
			defer s.mu.Unlock()
			return view(b.rec), nil
		}
		s.mu.Unlock()
	}
	select {
	case e.lookups <- struct{}{}:
		defer func() { <-e.lookups }()
	case <-ctx.Done():
		return subscription.Record{}, context.Cause(ctx)
	}
	return e.lookUp(ctx, r, id)
}

// lookUp reads a record.
func (e *Engine) lookUp(ctx context.Context, r *reader, id subscription.RecordID) (subscription.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	settings, err := subscription.ClientOf(&r.cluster, &r.sub)
	if err != nil {
		return subscription.Record{}, err
	}
	bounded, err := newDecompressor()
	if err != nil {
		return subscription.Record{}, err
	}
	client, err := e.newClient(&settings, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{id.Topic: {id.Partition: kgo.NewOffset().At(id.Offset)}}),
		kgo.FetchMaxBytes(minFetchBytes), kgo.FetchMaxPartitionBytes(minFetchBytes), kgo.WithDecompressor(bounded))
	if err != nil {
		return subscription.Record{}, err
	}
	defer client.Close()
	at := topicPartition{id.Topic, id.Partition}
	if r.lacks(at) {
		return subscription.Record{}, noRecord("%s has no partition %d", id.Topic, id.Partition)
	}
	if err := checkOffset(ctx, kadm.NewClient(client), &settings, at, id.Offset); err != nil {
		return subscription.Record{}, err
	}
	fetches := client.PollRecords(ctx, 1)
	if err := fetches.Err(); err != nil {
		return subscription.Record{}, brokerFault(err)
	}
	for _, rec := range fetches.Records() {
		if rec.Offset == id.Offset && !rec.Attrs.IsControl() {
			return view(rec), nil
		}
	}
	return subscription.Record{}, noRecord("%s/%d has no record at offset %d: it was compacted, or belongs to a transaction", id.Topic, id.Partition, id.Offset)
}

// checkOffset returns an error if an offset is not within what can be read of a topic partition: a fetch would wait for it.
func checkOffset(ctx context.Context, admin *kadm.Client, settings *subscription.Client, at topicPartition, offset int64) error {
	listed := map[string]topicInfo{at.topic: newTopicInfo()}
	if err := listOffsets(ctx, admin, listed, []string{at.topic}); err != nil && !partial(err) {
		return requestFault(err)
	}
	first, known1 := listed[at.topic].starts[at.partition]
	end, known2 := listed[at.topic].ends[at.partition]
	switch {
	case !known1 || !known2:
		return notListed(at, listed[at.topic], nil)
	case offset < first || offset >= end:
		return noRecord("%s/%d has no record at offset %d; its records begin at %d, and the next one will be at %d", at.topic, at.partition, offset, first, end)
	}
	committed, err := committedEnds(ctx, admin, settings, []string{at.topic})
	if err != nil {
		return nil //nolint:nilerr // it may be about another topic partition
	}
	if begin := committed.or(at.topic, at.partition, end); offset >= begin {
		return noRecord("the offset %d of %s/%d cannot be read yet: a transaction that begins at %d has not ended", offset, at.topic, at.partition, begin)
	}
	return nil
}

// lacks reports whether a topic is known not to have a partition.
func (r *reader) lacks(at topicPartition) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, known := r.topics[at.topic]
	return known && at.partition >= info.partitions
}

func noRecord(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{subscription.ErrNoRecord}, args...)...)
}
