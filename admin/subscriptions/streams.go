package subscriptions

import (
	"context"
	"errors"

	"platform/internal/subscription"
)

// Streams provides the state of event subscriptions on all nodes, and access to the brokers.
type Streams interface {
	// Statuses returns the state of a subscription, or of all if id is empty, as reported by the
	// nodes that respond in time. brief omits topic partitions.
	Statuses(ctx context.Context, id string, brief bool) Statuses
	// ResolveStart requests the start offsets of a subscription from the broker. The error is a
	// *subscription.BrokerError if it is about the brokers. With the reason TopicMissing, it comes with
	// the offsets of the other topics: those that do not exist are read from their beginning.
	ResolveStart(ctx context.Context, s *subscription.Subscription, c *subscription.Cluster) ([]subscription.TopicStart, error)
	// Record returns a record. Errors can be subscription.ErrNotRead and ErrNoRecord.
	Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error)
	// RetryRecord retries the delivery of a record that blocks its topic partition; SkipRecord skips
	// it. Errors can be subscription.ErrNotRead and ErrNotBlocked.
	RetryRecord(ctx context.Context, id subscription.RecordID) error
	SkipRecord(ctx context.Context, id subscription.RecordID) error
	// DeadLetters returns up to limit dead letters of a subscription, behind one or from the first on
	// if that is nil, without keys, values and headers. silent lists the nodes that did not
	// respond and the partitions that no node leads, whose dead letters are missing.
	DeadLetters(ctx context.Context, subscription string, after *subscription.RecordID, limit int) (letters []subscription.DeadLetter, silent []string)
	// DeadLetter returns a dead letter. Errors of this method and of the next two can be
	// subscription.ErrNotRead, ErrNoDeadLetter and ErrUndeliverable.
	DeadLetter(ctx context.Context, id subscription.RecordID) (subscription.DeadLetter, error)
	// RetryDeadLetter delivers a dead letter and deletes it; DropDeadLetter only deletes it.
	RetryDeadLetter(ctx context.Context, id subscription.RecordID) error
	DropDeadLetter(ctx context.Context, id subscription.RecordID) error
}

// Statuses contains the reports of nodes, by subscription.
type Statuses struct {
	ByID map[string][]subscription.Status
	// Silent lists the nodes that did not report, with the reason.
	Silent []string
}

// NoStreams is the Streams of a server without event subscriptions.
type NoStreams struct{}

var errNoStreams = errors.New("this node does not read event streams")

func (NoStreams) Statuses(context.Context, string, bool) Statuses { return Statuses{} }
func (NoStreams) ResolveStart(context.Context, *subscription.Subscription, *subscription.Cluster) ([]subscription.TopicStart, error) {
	return nil, errNoStreams
}
func (NoStreams) Record(context.Context, subscription.RecordID) (subscription.Record, error) {
	return subscription.Record{}, subscription.ErrNotRead
}
func (NoStreams) RetryRecord(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}
func (NoStreams) SkipRecord(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}

func (NoStreams) DeadLetters(context.Context, string, *subscription.RecordID, int) ([]subscription.DeadLetter, []string) {
	return nil, nil
}

func (NoStreams) DeadLetter(context.Context, subscription.RecordID) (subscription.DeadLetter, error) {
	return subscription.DeadLetter{}, subscription.ErrNotRead
}

func (NoStreams) RetryDeadLetter(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}

func (NoStreams) DropDeadLetter(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}
