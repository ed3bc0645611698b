package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of records in dead-letter topics.
const (
	deadLetterReason       = "platform.dlq.reason"
	deadLetterMessage      = "platform.dlq.message"
	deadLetterTopic        = "platform.dlq.topic"
	deadLetterPartition    = "platform.dlq.partition"
	deadLetterOffset       = "platform.dlq.offset"
	deadLetterTimestamp    = "platform.dlq.timestamp"
	deadLetterSubscription = "platform.dlq.subscription"
)

// largestDeadLetter bounds a request with a record that is larger than a batch of records: the
// default limit of brokers for requests.
const largestDeadLetter = 100 << 20

// errReadsDeadLetters means that dead letters would be read again.
var errReadsDeadLetters = errors.New("the subscription reads it itself; exclude it from the pattern or change dead_letter_topic")

// deadLetter writes a record to the dead-letter topic, with its bytes unchanged. It may
// be written again after a crash, or if the broker does not confirm it in time.
func (r *reader) deadLetter(ctx context.Context, rec *kgo.Record, why *unusable) error {
	to := r.sub.DeadLetterTopicOf(rec.Topic)
	if r.sub.ReadsDeadLetters(rec.Topic) { // it would be dead-lettered repeatedly
		return errReadsDeadLetters
	}
	r.mu.Lock()
	client, settings := r.kafka, r.client
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := produce(ctx, client, r.letter(to, rec, why))
	if !errors.Is(err, kerr.MessageTooLarge) {
		return err
	}
	// With a client of its own, so that it is not in a batch with others, which could be too large.
	large, err := r.e.newClient(&settings, kgo.ProducerBatchMaxBytes(largestDeadLetter))
	if err != nil {
		return err
	}
	defer large.Close()
	return produce(ctx, large, r.letter(to, rec, why))
}

// produce writes a record and returns once that is confirmed, or ctx ends: ProduceSync would also wait for the delay
// before the next attempt.
func produce(ctx context.Context, client *kgo.Client, rec *kgo.Record) error {
	confirmed := make(chan error, 1)
	client.Produce(ctx, rec, func(_ *kgo.Record, err error) { confirmed <- err })
	select {
	case err := <-confirmed:
		return err
	case <-ctx.Done():
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errNotConfirmed
	}
	return ctx.Err()
}

// errNotConfirmed means that a dead letter may have been written.
var errNotConfirmed = fmt.Errorf("no broker has confirmed the record within %v; it is written again", requestTimeout)

// letter returns the record that is written to a dead-letter topic.
func (r *reader) letter(to string, rec *kgo.Record, why *unusable) *kgo.Record {
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	return &kgo.Record{
		Topic: to, Key: rec.Key, Value: rec.Value,
		Headers: append(rec.Headers[:len(rec.Headers):len(rec.Headers)],
			header(deadLetterReason, string(why.reason)), header(deadLetterMessage, clip(why.message)),
			header(deadLetterTopic, rec.Topic), header(deadLetterPartition, itoa(int64(rec.Partition))), header(deadLetterOffset, itoa(rec.Offset)),
			header(deadLetterTimestamp, itoa(rec.Timestamp.UnixMilli())), header(deadLetterSubscription, r.sub.ID)),
	}
}
