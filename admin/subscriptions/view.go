package subscriptions

import (
	"context"
	"encoding/base64"
	"time"
	"unicode/utf8"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/internal/subscription"
)

// subscriptionView is a subscription as shown to users.
type subscriptionView struct {
	ID              string             `json:"id"`
	Source          string             `json:"source"`
	Topics          []string           `json:"topics,omitempty"`
	TopicPattern    string             `json:"topic_pattern,omitempty"`
	Sink            string             `json:"sink"`
	Options         map[string]string  `json:"options"`
	Ordering        string             `json:"ordering"`
	OnError         string             `json:"on_error"`
	DeadLetterTopic string             `json:"dead_letter_topic,omitempty"`
	Tombstones      string             `json:"tombstones"`
	OnRecreate      string             `json:"on_recreate"`
	Headers         []string           `json:"headers"`
	Scope           string             `json:"scope,omitempty"`
	LimitKey        string             `json:"limit_key,omitempty"`
	MaxInFlight     uint32             `json:"max_in_flight"`
	Start           startView          `json:"start"`
	Incarnation     uint64             `json:"incarnation"`
	CreatedAt       rest.Timestamp     `json:"created_at"`
	ModifiedAt      rest.Timestamp     `json:"modified_at"`
	State           subscription.State `json:"state"`
	Reason          string             `json:"reason,omitempty"`
	Message         string             `json:"message,omitempty"`
	Since           rest.Timestamp     `json:"since,omitzero"`
	Paused          *pauseView         `json:"paused,omitempty"`
	// Sums over the topic partitions.
	TopicPartitions int                  `json:"topic_partitions"`
	Blocked         int                  `json:"blocked"`
	DeadLetters     uint64               `json:"dead_letters"`
	LagRecords      *int64               `json:"lag_records,omitempty"`
	LagSeconds      *float64             `json:"lag_seconds,omitempty"`
	Partitions      []topicPartitionView `json:"partitions,omitempty"`
	Silent          []string             `json:"silent_nodes,omitempty"`
	Info            []rest.Notice        `json:"info,omitempty"`
}

type subscriptionList struct {
	Subscriptions []subscriptionView `json:"subscriptions"`
	Silent        []string           `json:"silent_nodes,omitempty"`
}

// startView is the start of an incarnation of a subscription.
type startView struct {
	From      string                      `json:"from"`
	Timestamp rest.Timestamp              `json:"timestamp,omitzero"`
	Offsets   map[string]map[string]int64 `json:"offsets,omitempty"`
	Otherwise string                      `json:"otherwise,omitempty"`
	Resolved  bool                        `json:"resolved"`
}

type pauseView struct {
	By     string         `json:"by"`
	Reason string         `json:"reason,omitempty"`
	At     rest.Timestamp `json:"at"`
}

// topicPartitionView is a topic partition as shown to users.
type topicPartitionView struct {
	Topic        string             `json:"topic"`
	Partition    int32              `json:"partition"`
	State        subscription.State `json:"state"`
	Reason       string             `json:"reason,omitempty"`
	Message      string             `json:"message,omitempty"`
	Since        rest.Timestamp     `json:"since,omitzero"`
	Node         ids.Node           `json:"node,omitempty"`
	Owner        uint32             `json:"owner_partition"`
	StartOffset  *int64             `json:"start_offset,omitempty"`
	Position     int64              `json:"position"`
	EndOffset    *int64             `json:"end_offset,omitempty"`
	LagRecords   *int64             `json:"lag_records,omitempty"`
	LagSeconds   *float64           `json:"lag_seconds,omitempty"`
	InFlight     uint32             `json:"in_flight"`
	Delivered    uint64             `json:"delivered"`
	Skipped      uint64             `json:"skipped"`
	DeadLettered uint64             `json:"dead_lettered"`
	LastRecordAt rest.Timestamp     `json:"last_record_at,omitzero"`
	LastError    string             `json:"last_error,omitempty"`
	LastErrorAt  rest.Timestamp     `json:"last_error_at,omitzero"`
	Blocked      *blockedView       `json:"blocked_record,omitempty"`
}

type blockedView struct {
	Offset     int64          `json:"offset"`
	Timestamp  rest.Timestamp `json:"timestamp,omitzero"`
	Reason     string         `json:"reason"`
	Message    string         `json:"message,omitempty"`
	KeyBytes   int            `json:"key_bytes"`
	ValueBytes int            `json:"value_bytes"`
}

// recordView is a record of a topic.
type recordView struct {
	Topic      string             `json:"topic"`
	Partition  int32              `json:"partition"`
	Offset     int64              `json:"offset"`
	Timestamp  rest.Timestamp     `json:"timestamp,omitzero"`
	Key        *bytesView         `json:"key"`   // null if absent
	Value      *bytesView         `json:"value"` // null for a tombstone
	Headers    []recordHeaderView `json:"headers"`
	KeyBytes   int                `json:"key_bytes"`
	ValueBytes int                `json:"value_bytes"`
}

// bytesView contains bytes as text if they are valid UTF-8, otherwise in base64.
type bytesView struct {
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

type recordHeaderView struct {
	Name  string     `json:"name"`
	Value *bytesView `json:"value"`
}

// State returns all that is shown of subscriptions, their topic partitions, and the Kafka
// clusters, to detect changes.
func (s *Server) State(ctx context.Context) any {
	list, _ := s.registry.Subscriptions()
	var statuses Statuses
	if len(list) > 0 {
		statuses = s.cfg.Streams.Statuses(ctx, "", false)
	}
	views := make([]subscriptionView, len(list))
	for i := range list {
		views[i] = s.viewSubscription(&list[i], statuses, true)
	}
	// Whoever sees the version knows the rest of the state, and could guess a password offline. A change
	// of one changes the version of its cluster.
	clusters := s.kafkaClusters()
	for i := range clusters {
		clusters[i].Properties = subscription.Redact(clusters[i].Properties)
	}
	return []any{views, clusters}
}

// viewSubscription returns a subscription with the reports of nodes, and its topic partitions if
// requested.
func (s *Server) viewSubscription(sub *subscription.Subscription, statuses Statuses, partitions bool) subscriptionView {
	view := subscriptionView{
		ID: sub.ID, Source: sub.Source.String(), Topics: sub.Topics, TopicPattern: sub.Pattern, Sink: sub.Sink.String(),
		Options: s.shownOptions(sub), Ordering: sub.Ordering.String(), OnError: sub.OnError.String(), DeadLetterTopic: sub.DeadLetterTopic,
		Tombstones: sub.Tombstones.String(), OnRecreate: sub.OnRecreate.String(), Headers: shownHeaders(&sub.Options), Scope: sub.Scope.String(), LimitKey: sub.LimitKey.String(),
		MaxInFlight: sub.MaxInFlight, Start: viewStart(sub), Incarnation: sub.Incarnation,
		CreatedAt: rest.TimestampOf(sub.CreatedAt), ModifiedAt: rest.TimestampOf(sub.ModifiedAt), Silent: statuses.Silent,
	}
	if sub.Paused != nil {
		view.Paused = &pauseView{sub.Paused.By, sub.Paused.Reason, rest.TimestampOf(sub.Paused.At)}
	}
	_, known := s.kafkaCluster(sub.Cluster)
	merged := subscription.Merge(sub, statuses.ByID[sub.ID], known)
	view.State, view.Reason, view.Message, view.Since = merged.State, string(merged.Reason), merged.Message, optionalTime(merged.Since)
	view.DeadLetters = merged.DeadLetters
	view.sum(merged.Partitions)
	if partitions {
		view.Partitions = make([]topicPartitionView, len(merged.Partitions))
		for i := range merged.Partitions {
			view.Partitions[i] = viewTopicPartition(sub, &merged.Partitions[i])
		}
	}
	return view
}

// sum sets the sums over topic partitions. The lag is omitted unless all lags are known.
func (v *subscriptionView) sum(partitions []subscription.PartitionStatus) {
	v.TopicPartitions = len(partitions)
	records, seconds, known := int64(0), 0.0, len(partitions) > 0
	for i := range partitions {
		p := &partitions[i]
		if p.State == subscription.Blocked {
			v.Blocked++
		}
		lag := p.Lag()
		known = known && lag >= 0
		records += lag
		seconds = max(seconds, p.LagSeconds)
	}
	if known {
		v.LagRecords = &records
		if subscription.KnowsAge(records, seconds) {
			v.LagSeconds = &seconds
		}
	}
}

// shownOptions returns the properties, including those that the server adds, without secrets.
func (s *Server) shownOptions(sub *subscription.Subscription) map[string]string {
	shown := subscription.Redact(sub.Properties)
	if shown == nil {
		shown = map[string]string{}
	}
	cluster, _ := s.kafkaCluster(sub.Cluster)
	for name, value := range map[string]string{"group.id": sub.ID, "client.id": subscription.DefaultClientID} {
		if shown[name] == "" && cluster.Properties[name] == "" {
			shown[name] = value
		}
	}
	return shown
}

func shownHeaders(o *subscription.Options) []string {
	if o.AllHeaders {
		return []string{allHeaders}
	}
	return append([]string{}, o.Headers...)
}

func viewStart(sub *subscription.Subscription) startView {
	view := startView{From: sub.Start.Kind.String(), Resolved: sub.Resolved}
	if sub.Start.Kind == subscription.StartTimestamp {
		view.Timestamp = rest.TimestampOf(sub.Start.Timestamp)
	}
	if sub.Start.Otherwise != 0 {
		view.Otherwise = sub.Start.Otherwise.String()
	}
	for _, t := range sub.Start.Offsets {
		if view.Offsets == nil {
			view.Offsets = map[string]map[string]int64{}
		}
		view.Offsets[t.Topic] = map[string]int64{}
		for _, o := range t.Offsets {
			view.Offsets[t.Topic][itoa(o.Partition)] = o.Offset
		}
	}
	return view
}

func viewTopicPartition(sub *subscription.Subscription, p *subscription.PartitionStatus) topicPartitionView {
	view := topicPartitionView{
		Topic: p.Topic, Partition: p.Partition, State: p.State, Reason: string(p.Reason), Message: p.Message, Since: optionalTime(p.Since),
		Node: ids.Node(p.Node), Owner: p.Owner, Position: p.Position, InFlight: p.InFlight, Delivered: p.Delivered,
		Skipped: p.Skipped, DeadLettered: p.DeadLettered, LastRecordAt: optionalTime(p.LastRecordAt), LastError: p.LastError,
		LastErrorAt: optionalTime(p.LastErrorAt),
	}
	if offset, known := sub.StartOf(p.Topic, p.Partition); known {
		view.StartOffset = &offset
	}
	if p.End >= 0 {
		end, lag := p.End, p.Lag()
		view.EndOffset, view.LagRecords = &end, &lag
		if subscription.KnowsAge(lag, p.LagSeconds) {
			view.LagSeconds = &p.LagSeconds
		}
	}
	if b := p.Blocked; b != nil {
		view.Blocked = &blockedView{b.Offset, optionalTime(b.Timestamp), string(b.Reason), b.Message, b.KeySize, b.ValueSize}
	}
	return view
}

func viewRecord(r *subscription.Record) recordView {
	view := recordView{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: optionalTime(r.Timestamp), Key: viewBytes(r.Key), Value: viewBytes(r.Value),
		Headers: []recordHeaderView{}, KeyBytes: r.KeySize, ValueBytes: r.ValueSize,
	}
	for _, h := range r.Headers {
		view.Headers = append(view.Headers, recordHeaderView{h.Name, viewBytes(h.Value)})
	}
	return view
}

func viewBytes(b []byte) *bytesView {
	if b == nil {
		return nil
	}
	if utf8.Valid(b) {
		text := string(b)
		return &bytesView{Text: &text}
	}
	encoded := base64.StdEncoding.EncodeToString(b)
	return &bytesView{Base64: &encoded}
}

// optionalTime converts a time; the zero time is 0.
func optionalTime(t time.Time) rest.Timestamp {
	if t.IsZero() {
		return 0
	}
	return rest.TimestampOf(t)
}
