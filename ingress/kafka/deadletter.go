package kafka

import (
	"context"
	"fmt"

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

// deadLetter writes a record to the dead-letter topic, with its bytes unchanged. After a crash
// it may be written again.
func (r *reader) deadLetter(ctx context.Context, rec *kgo.Record, why *unusable) error {
	to := r.sub.DeadLetterTopicOf(rec.Topic)
	if r.sub.ReadsDeadLetters(rec.Topic) { // it would be dead-lettered repeatedly
		return fmt.Errorf("the subscription reads the topic %s itself; exclude it from the pattern or change dead_letter_topic", to)
	}
	r.mu.Lock()
	client := r.kafka
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	return client.ProduceSync(ctx, &kgo.Record{
		Topic: to, Key: rec.Key, Value: rec.Value,
		Headers: append(rec.Headers[:len(rec.Headers):len(rec.Headers)],
			header(deadLetterReason, string(why.reason)), header(deadLetterMessage, clip(why.message)),
			header(deadLetterTopic, rec.Topic), header(deadLetterPartition, itoa(int64(rec.Partition))), header(deadLetterOffset, itoa(rec.Offset)),
			header(deadLetterTimestamp, itoa(rec.Timestamp.UnixMilli())), header(deadLetterSubscription, r.sub.ID)),
	}).FirstErr()
}
