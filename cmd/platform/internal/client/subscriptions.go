package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"platform/internal/ids"
)

// SubscriptionRequest creates or changes an event subscription. Fields that are nil are not set.
type SubscriptionRequest struct {
	Source          *string            `json:"source,omitempty"`
	TopicPattern    *string            `json:"topic_pattern,omitempty"`
	Sink            *string            `json:"sink,omitempty"`
	Options         *map[string]string `json:"options,omitempty"`
	Start           json.RawMessage    `json:"start,omitempty"`
	Ordering        *string            `json:"ordering,omitempty"`
	OnError         *string            `json:"on_error,omitempty"`
	DeadLetterTopic *string            `json:"dead_letter_topic,omitempty"`
	Tombstones      *string            `json:"tombstones,omitempty"`
	OnRecreate      *string            `json:"on_recreate,omitempty"`
	Headers         *[]string          `json:"headers,omitempty"`
	Scope           *string            `json:"scope,omitempty"`
	LimitKey        *string            `json:"limit_key,omitempty"`
	MaxInFlight     *uint32            `json:"max_in_flight,omitempty"`
}

// Subscription is an event subscription.
type Subscription struct {
	ID              string             `json:"id"`
	Source          string             `json:"source"`
	Topics          []string           `json:"topics"`
	Sink            string             `json:"sink"`
	Options         map[string]string  `json:"options"`
	Ordering        string             `json:"ordering"`
	OnError         string             `json:"on_error"`
	DeadLetterTopic string             `json:"dead_letter_topic"`
	Tombstones      string             `json:"tombstones"`
	OnRecreate      string             `json:"on_recreate"`
	Headers         []string           `json:"headers"`
	Scope           string             `json:"scope"`
	LimitKey        string             `json:"limit_key"`
	MaxInFlight     uint32             `json:"max_in_flight"`
	Start           SubscriptionStart  `json:"start"`
	Incarnation     uint64             `json:"incarnation"`
	CreatedAt       time.Time          `json:"created_at"`
	ModifiedAt      time.Time          `json:"modified_at"`
	State           string             `json:"state"`
	Reason          string             `json:"reason"`
	Message         string             `json:"message"`
	Since           time.Time          `json:"since"`
	Paused          *SubscriptionPause `json:"paused"`
	TopicPartitions int                `json:"topic_partitions"`
	Blocked         int                `json:"blocked"`
	DeadLetters     uint64             `json:"dead_letters"`
	LagRecords      *int64             `json:"lag_records"`
	LagSeconds      *float64           `json:"lag_seconds"`
	Partitions      []TopicPartition   `json:"partitions"`
	Silent          []string           `json:"silent_nodes"`
	Info            []Notice           `json:"info"`
}

// SubscriptionStart is where a subscription started.
type SubscriptionStart struct {
	From      string    `json:"from"`
	Timestamp time.Time `json:"timestamp"`
	Otherwise string    `json:"otherwise"`
	Resolved  bool      `json:"resolved"`
}

// SubscriptionPause records who paused a subscription.
type SubscriptionPause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// TopicPartition is a topic partition that a subscription reads.
type TopicPartition struct {
	Topic        string         `json:"topic"`
	Partition    int32          `json:"partition"`
	State        string         `json:"state"`
	Reason       string         `json:"reason"`
	Message      string         `json:"message"`
	Node         ids.Node       `json:"node"`
	Position     int64          `json:"position"`
	EndOffset    *int64         `json:"end_offset"`
	LagRecords   *int64         `json:"lag_records"`
	LagSeconds   float64        `json:"lag_seconds"`
	InFlight     uint32         `json:"in_flight"`
	LastError    string         `json:"last_error"`
	Blocked      *BlockedRecord `json:"blocked_record"`
	Delivered    uint64         `json:"delivered"`
	Skipped      uint64         `json:"skipped"`
	DeadLettered uint64         `json:"dead_lettered"`
}

// BlockedRecord is a record that blocks its topic partition.
type BlockedRecord struct {
	Offset     int64     `json:"offset"`
	Timestamp  time.Time `json:"timestamp"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
	KeyBytes   int       `json:"key_bytes"`
	ValueBytes int       `json:"value_bytes"`
}

// KafkaCluster is a Kafka cluster.
type KafkaCluster struct {
	Name          string            `json:"name"`
	Properties    map[string]string `json:"properties"`
	CreatedAt     time.Time         `json:"created_at"`
	Static        bool              `json:"static"`
	Subscriptions []Subscription    `json:"subscriptions,omitempty"`
	Info          []Notice          `json:"info,omitempty"`
}

func subscriptionPath(id string) string { return "/subscriptions/" + url.PathEscape(id) }

// CreateSubscription creates a subscription; with check, only if the brokers know its topics.
func (c *Client) CreateSubscription(ctx context.Context, r SubscriptionRequest, check bool) (s Subscription, _ *Response, err error) {
	path := "/subscriptions"
	if check {
		path += "?check=true"
	}
	response, err := c.adminJSON(ctx, http.MethodPost, path, r, &s)
	return s, response, err
}

// Subscriptions lists the subscriptions with the given source and sink, if any.
func (c *Client) Subscriptions(ctx context.Context, source, sink string) (list struct {
	Subscriptions []Subscription
	Silent        []string `json:"silent_nodes"`
}, _ *Response, err error,
) {
	query := url.Values{}
	for name, value := range map[string]string{"source": source, "sink": sink} {
		if value != "" {
			query.Set(name, value)
		}
	}
	response, err := c.adminJSON(ctx, http.MethodGet, "/subscriptions?"+query.Encode(), nil, &list)
	return list, response, err
}

// Subscription returns a subscription with its topic partitions.
func (c *Client) Subscription(ctx context.Context, id string) (s Subscription, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodGet, subscriptionPath(id), nil, &s)
	return s, response, err
}

// EditSubscription changes settings of a subscription.
func (c *Client) EditSubscription(ctx context.Context, id string, r SubscriptionRequest) (s Subscription, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodPatch, subscriptionPath(id), r, &s)
	return s, response, err
}

// PauseSubscription stops a subscription until ResumeSubscription.
func (c *Client) PauseSubscription(ctx context.Context, id, reason string) (s Subscription, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodPost, subscriptionPath(id)+"/pause?"+url.Values{"reason": {reason}}.Encode(), nil, &s)
	return s, response, err
}

// ResumeSubscription continues a paused subscription.
func (c *Client) ResumeSubscription(ctx context.Context, id string) (s Subscription, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodPost, subscriptionPath(id)+"/resume", nil, &s)
	return s, response, err
}

// SeekSubscription continues a subscription at another position.
func (c *Client) SeekSubscription(ctx context.Context, id string, start json.RawMessage, restart bool) (s Subscription, _ *Response, err error) {
	path := subscriptionPath(id) + "/seek"
	if restart {
		path += "?restart=true"
	}
	response, err := c.adminJSON(ctx, http.MethodPost, path, map[string]json.RawMessage{"start": start}, &s)
	return s, response, err
}

// DeleteSubscription deletes a subscription, with force without waiting for records in flight.
func (c *Client) DeleteSubscription(ctx context.Context, id string, force bool) error {
	path := subscriptionPath(id)
	if force {
		path += "?force=true"
	}
	_, err := c.adminJSON(ctx, http.MethodDelete, path, nil, nil)
	return err
}

// OnRecord retries or skips a record that blocks its topic partition.
func (c *Client) OnRecord(ctx context.Context, id, operation, topic string, partition int32, offset int64) error {
	path := fmt.Sprintf("%s/records/%s/%d/%d/%s", subscriptionPath(id), url.PathEscape(topic), partition, offset, operation)
	_, err := c.adminJSON(ctx, http.MethodPost, path, nil, nil)
	return err
}

// Record returns a record of a topic that a subscription reads.
func (c *Client) Record(ctx context.Context, id, topic string, partition int32, offset int64) (r Record, _ *Response, err error) {
	path := fmt.Sprintf("%s/records/%s/%d/%d", subscriptionPath(id), url.PathEscape(topic), partition, offset)
	response, err := c.adminJSON(ctx, http.MethodGet, path, nil, &r)
	return r, response, err
}

// DeadLetter is a record that could not be delivered and that the server keeps.
type DeadLetter struct {
	Topic      string    `json:"topic"`
	Partition  int32     `json:"partition"`
	Offset     int64     `json:"offset"`
	Timestamp  time.Time `json:"timestamp"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
	At         time.Time `json:"at"`
	KeyBytes   int       `json:"key_bytes"`
	ValueBytes int       `json:"value_bytes"`
}

// DeadLetterPage is a page of dead letters.
type DeadLetterPage struct {
	Letters []DeadLetter `json:"dead_letters"`
	Next    string       `json:"next"`
	Silent  []string     `json:"silent_nodes"`
}

// Record is a record of a topic; as a dead letter, it also has the fields of DeadLetter that are about
// the delivery.
type Record struct {
	DeadLetter
	Key     *RecordBytes   `json:"key"`
	Value   *RecordBytes   `json:"value"`
	Headers []RecordHeader `json:"headers"`
}

// RecordBytes is a key or value: text, or bytes that are not.
type RecordBytes struct {
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64"`
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string       `json:"name"`
	Value *RecordBytes `json:"value"`
}

// DeadLetterResult is the outcome of an operation on a page of dead letters.
type DeadLetterResult struct {
	Done, Failed int
	Errors       []struct {
		Topic     string
		Partition int32
		Offset    int64
		Message   string
	}
	Next   string
	Silent []string `json:"silent_nodes"`
}

func lettersPath(id string) string { return subscriptionPath(id) + "/dead-letters" }

func letterPath(id, topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s/%s/%d/%d", lettersPath(id), url.PathEscape(topic), partition, offset)
}

func letterPage(after string) string { return "?" + url.Values{"after": {after}}.Encode() }

// DeadLetters lists dead letters of a subscription behind the given one, if any.
func (c *Client) DeadLetters(ctx context.Context, id, after string) (page DeadLetterPage, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodGet, lettersPath(id)+letterPage(after), nil, &page)
	return page, response, err
}

// DeadLetter returns a dead letter with its contents.
func (c *Client) DeadLetter(ctx context.Context, id, topic string, partition int32, offset int64) (l Record, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodGet, letterPath(id, topic, partition, offset), nil, &l)
	return l, response, err
}

// RetryDeadLetter delivers a dead letter.
func (c *Client) RetryDeadLetter(ctx context.Context, id, topic string, partition int32, offset int64) error {
	_, err := c.adminJSON(ctx, http.MethodPost, letterPath(id, topic, partition, offset)+"/retry", nil, nil)
	return err
}

// DropDeadLetter deletes a dead letter.
func (c *Client) DropDeadLetter(ctx context.Context, id, topic string, partition int32, offset int64) error {
	_, err := c.adminJSON(ctx, http.MethodDelete, letterPath(id, topic, partition, offset), nil, nil)
	return err
}

// RetryDeadLetters delivers a page of dead letters.
func (c *Client) RetryDeadLetters(ctx context.Context, id, after string) (r DeadLetterResult, err error) {
	_, err = c.adminJSON(ctx, http.MethodPost, lettersPath(id)+"/retry"+letterPage(after), nil, &r)
	return r, err
}

// DropDeadLetters deletes a page of dead letters.
func (c *Client) DropDeadLetters(ctx context.Context, id, after string) (r DeadLetterResult, err error) {
	_, err = c.adminJSON(ctx, http.MethodDelete, lettersPath(id)+letterPage(after), nil, &r)
	return r, err
}

// CreateKafkaCluster adds a Kafka cluster.
func (c *Client) CreateKafkaCluster(ctx context.Context, name string, properties map[string]string) (k KafkaCluster, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodPost, "/kafka-clusters", map[string]any{"name": name, "properties": properties}, &k)
	return k, response, err
}

// KafkaClusters lists the Kafka clusters.
func (c *Client) KafkaClusters(ctx context.Context) (list struct{ Clusters []KafkaCluster }, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodGet, "/kafka-clusters", nil, &list)
	return list, response, err
}

// KafkaCluster returns a Kafka cluster with its subscriptions.
func (c *Client) KafkaCluster(ctx context.Context, name string) (k KafkaCluster, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodGet, "/kafka-clusters/"+url.PathEscape(name)+"?include_subscriptions=true", nil, &k)
	return k, response, err
}

// EditKafkaCluster replaces the properties of a Kafka cluster.
func (c *Client) EditKafkaCluster(ctx context.Context, name string, properties map[string]string) (k KafkaCluster, _ *Response, err error) {
	response, err := c.adminJSON(ctx, http.MethodPatch, "/kafka-clusters/"+url.PathEscape(name), map[string]any{"properties": properties}, &k)
	return k, response, err
}

// DeleteKafkaCluster deletes a Kafka cluster, with force even if subscriptions read from it.
func (c *Client) DeleteKafkaCluster(ctx context.Context, name string, force bool) error {
	path := "/kafka-clusters/" + url.PathEscape(name)
	if force {
		path += "?force=true"
	}
	_, err := c.adminJSON(ctx, http.MethodDelete, path, nil, nil)
	return err
}
