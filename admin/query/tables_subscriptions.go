package query

import (
	"context"
	"encoding/json"
	"strconv"

	"platform/internal/ids"
	"platform/internal/subscription"
)

// SubscriptionState is an event subscription with what nodes report about it.
type SubscriptionState struct {
	subscription.Subscription
	Status subscription.Status // of all nodes
}

func subscriptionTables() []*Table {
	return []*Table{sysSubscription(), sysSubscriptionPartition(), sysDeadLetter()}
}

func subscriptionStates(ctx context.Context, s *session) ([]SubscriptionState, error) {
	if s.engine.cfg.Subscriptions == nil {
		return nil, nil
	}
	return s.engine.cfg.Subscriptions(ctx), nil
}

func sysSubscription() *Table {
	type row = SubscriptionState
	all := fixed(subscriptionStates, func(s *row, b []byte) []byte { return append(b, s.ID...) })
	return define("sys_subscription", "Event subscriptions: Kafka topics whose records are delivered to handlers.", all, []column[row]{
		plain("id", Text, "subscription id", func(s *row) value { return s.ID }),
		plain("source", Text, "cluster and topics", func(s *row) value { return s.Source.String() }),
		plain("sink", Text, "service and handler", func(s *row) value { return s.Sink.String() }),
		plain("kafka_cluster", Text, "Kafka cluster", func(s *row) value { return s.Cluster }),
		plain("topics", TextList, "topics; empty with a pattern", func(s *row) value { return listJSON(append([]string{}, s.Topics...)) }),
		plain("topic_pattern", Text, "regular expression of topic names", func(s *row) value { return text(s.Pattern) }),
		plain("state", Text, "starting, running, paused, blocked, throttled, draining, error or orphaned", func(s *row) value { return string(s.Status.State) }),
		plain("reason", Text, "code of the cause of the state", func(s *row) value { return text(string(s.Status.Reason)) }),
		plain("message", Text, "cause of the state", func(s *row) value { return text(s.Status.Message) }),
		plain("state_since", Timestamp, "since when it has the state", func(s *row) value { return moment(s.Status.Since) }),
		plain("incarnation", U64, "increases with every seek", func(s *row) value { return number(s.Incarnation) }),
		plain("ordering", Text, "key, partition or none", func(s *row) value { return s.Ordering.String() }),
		plain("on_error", Text, "block, skip or dead-letter", func(s *row) value { return s.OnError.String() }),
		plain("dead_letter_topic", Text, "topic of records that cannot be delivered", func(s *row) value { return text(s.DeadLetterTopic) }),
		plain("max_in_flight", U32, "records of a topic partition that are handed over and not acknowledged, at most", func(s *row) value { return number(s.MaxInFlight) }),
		plain("options", Text, "properties of the Kafka client, as JSON, without secrets", func(s *row) value { return propertiesJSON(s.Properties) }),
		plain("topic_partitions", U32, "topic partitions that are read", func(s *row) value { return number(len(s.Status.Partitions)) }),
		plain("blocked_partitions", U32, "topic partitions that a record blocks", func(s *row) value { return number(s.blocked()) }),
		plain("dead_letters", U64, "records that could not be delivered and that the server keeps", func(s *row) value { return number(s.Status.DeadLetters) }),
		plain("lag_records", U64, "records that are not delivered; NULL if not known", func(s *row) value { return s.lag() }),
		plain("lag", Duration, "age of the oldest record that is not delivered; NULL if not known, such as while paused", func(s *row) value { return s.age() }),
		plain("paused_by", Text, "who paused it", func(s *row) value { return s.paused(func(p *subscription.Pause) value { return text(p.By) }) }),
		plain("paused_reason", Text, "why it was paused", func(s *row) value { return s.paused(func(p *subscription.Pause) value { return text(p.Reason) }) }),
		plain("paused_at", Timestamp, "when it was paused", func(s *row) value { return s.paused(func(p *subscription.Pause) value { return moment(p.At) }) }),
		plain("created_at", Timestamp, "creation", func(s *row) value { return moment(s.CreatedAt) }),
		plain("modified_at", Timestamp, "last change of its settings", func(s *row) value { return moment(s.ModifiedAt) }),
	})
}

func propertiesJSON(properties map[string]string) value {
	if len(properties) == 0 {
		return nil
	}
	data, err := json.Marshal(subscription.Redact(properties))
	if err != nil {
		return nil // a map of texts is always encoded
	}
	return string(data)
}

func (s *SubscriptionState) paused(of func(*subscription.Pause) value) value {
	if s.Paused == nil {
		return nil
	}
	return of(s.Paused)
}

func (s *SubscriptionState) blocked() (n int) {
	for i := range s.Status.Partitions {
		if s.Status.Partitions[i].State == subscription.Blocked {
			n++
		}
	}
	return n
}

// lag returns the sum of the lags of topic partitions, NULL unless all are known.
func (s *SubscriptionState) lag() value {
	sum := int64(0)
	for i := range s.Status.Partitions {
		lag := s.Status.Partitions[i].Lag()
		if lag < 0 {
			return nil
		}
		sum += lag
	}
	if len(s.Status.Partitions) == 0 {
		return nil
	}
	return sum
}

func (s *SubscriptionState) age() value {
	if len(s.Status.Partitions) == 0 {
		return nil
	}
	records, most := int64(0), 0.0
	for i := range s.Status.Partitions {
		p := &s.Status.Partitions[i]
		records, most = max(records, p.Lag()), max(most, p.LagSeconds)
	}
	return age(records, most)
}

func age(records int64, seconds float64) value {
	if !subscription.KnowsAge(records, seconds) {
		return nil
	}
	return int64(seconds * 1000)
}

// topicPartition is a topic partition of a subscription.
type topicPartition struct {
	subscription *SubscriptionState
	subscription.PartitionStatus
}

func sysSubscriptionPartition() *Table {
	type row = topicPartition
	all := fixed(func(ctx context.Context, s *session) ([]row, error) {
		states, err := subscriptionStates(ctx, s)
		var rows []row
		for i := range states {
			for _, p := range states[i].Status.Partitions {
				rows = append(rows, row{&states[i], p})
			}
		}
		return rows, err
	}, func(p *row, b []byte) []byte {
		return strconv.AppendInt(append(append(append(b, p.subscription.ID...), p.Topic...), '/'), int64(p.Partition), 10)
	})
	blocked := func(p *row, of func(*subscription.BlockedRecord) value) value {
		if p.Blocked == nil {
			return nil
		}
		return of(p.Blocked)
	}
	return define("sys_subscription_partition", "Topic partitions that event subscriptions read.", all, []column[row]{
		plain("subscription_id", Text, "subscription id", func(p *row) value { return p.subscription.ID }),
		plain("topic", Text, "topic", func(p *row) value { return p.Topic }),
		plain("partition", U32, "partition of the topic", func(p *row) value { return number(p.Partition) }),
		plain("state", Text, "state, as of subscriptions", func(p *row) value { return string(p.State) }),
		plain("reason", Text, "code of the cause of the state", func(p *row) value { return text(string(p.Reason)) }),
		plain("message", Text, "cause of the state", func(p *row) value { return text(p.Message) }),
		plain("state_since", Timestamp, "since when it has the state", func(p *row) value { return moment(p.Since) }),
		plain("node_id", Text, "node that reads it, such as N1", func(p *row) value { return plainID(ids.Node(p.Node)) }),
		plain("owner_partition_id", U32, "partition whose leader reads it", func(p *row) value { return number(p.Owner) }),
		plain("start_offset", U64, "where the incarnation started; NULL if the topic partition appeared later", func(p *row) value {
			if offset, known := p.subscription.StartOf(p.Topic, p.Partition); known {
				return offset
			}
			return nil
		}),
		plain("position", U64, "offset of the next record", func(p *row) value { return number(p.Position) }),
		plain("end_offset", U64, "offset of the next record to be produced; NULL if not known", func(p *row) value {
			if p.End < 0 {
				return nil
			}
			return number(p.End)
		}),
		plain("lag_records", U64, "records that are not delivered; NULL if not known", func(p *row) value {
			if lag := p.Lag(); lag >= 0 {
				return number(lag)
			}
			return nil
		}),
		plain("lag", Duration, "age of the oldest record that is not delivered; NULL if not known, such as while paused", func(p *row) value { return age(p.Lag(), p.LagSeconds) }),
		plain("in_flight", U32, "records handed over and not acknowledged", func(p *row) value { return number(p.InFlight) }),
		plain("delivered", U64, "records delivered since the node started to read", func(p *row) value { return number(p.Delivered) }),
		plain("skipped", U64, "records left out since then", func(p *row) value { return number(p.Skipped) }),
		plain("dead_lettered", U64, "records written to the dead-letter topic or kept since then", func(p *row) value { return number(p.DeadLettered) }),
		plain("last_record_at", Timestamp, "timestamp of the last delivered record", func(p *row) value { return moment(p.LastRecordAt) }),
		plain("last_error", Text, "last error", func(p *row) value { return text(p.LastError) }),
		plain("last_error_at", Timestamp, "when it occurred", func(p *row) value { return moment(p.LastErrorAt) }),
		plain("blocked_offset", U64, "offset of the record that blocks", func(p *row) value {
			return blocked(p, func(b *subscription.BlockedRecord) value { return b.Offset })
		}),
		plain("blocked_reason", Text, "code of why it blocks", func(p *row) value {
			return blocked(p, func(b *subscription.BlockedRecord) value { return string(b.Reason) })
		}),
		plain("blocked_message", Text, "why it blocks", func(p *row) value {
			return blocked(p, func(b *subscription.BlockedRecord) value { return text(b.Message) })
		}),
	})
}
