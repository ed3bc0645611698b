package kafka

import (
	"context"
	"strings"

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
	r.mu.Lock()
	client := r.kafka
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	return client.ProduceSync(ctx, &kgo.Record{
		Topic: strings.ReplaceAll(r.sub.DeadLetterTopic, "{topic}", rec.Topic), Key: rec.Key, Value: rec.Value,
		Headers: append(rec.Headers[:len(rec.Headers):len(rec.Headers)],
			header(deadLetterReason, string(why.reason)), header(deadLetterMessage, clip(why.message)),
			header(deadLetterTopic, rec.Topic), header(deadLetterPartition, itoa(int64(rec.Partition))), header(deadLetterOffset, itoa(rec.Offset)),
			header(deadLetterTimestamp, itoa(rec.Timestamp.UnixMilli())), header(deadLetterSubscription, r.sub.ID)),
	}).FirstErr()
}
