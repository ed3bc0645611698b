package admin

import (
	"context"
	"errors"

	"platform/internal/subscription"
)

// Streams are the event streams of the cluster: what the nodes that read them know, and the
// brokers.
type Streams interface {
	// Statuses returns the state of one subscription, or of all if id is empty, as the nodes
	// that respond in time report it. brief leaves out topic partitions.
	Statuses(ctx context.Context, id string, brief bool) StreamStatuses
	// ResolveStart asks the broker where a subscription starts.
	ResolveStart(ctx context.Context, s *subscription.Subscription, c *subscription.Cluster) ([]subscription.TopicStart, error)
	// Record returns a record that blocks its topic partition. Errors can be
	// subscription.ErrNotRead and ErrNotBlocked, also of the next methods.
	Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error)
	// RetryRecord tries to deliver such a record again, SkipRecord leaves it out.
	RetryRecord(ctx context.Context, id subscription.RecordID) error
	SkipRecord(ctx context.Context, id subscription.RecordID) error
}

// StreamStatuses are the reports of nodes by subscription.
type StreamStatuses struct {
	ByID map[string][]subscription.Status
	// Silent lists the nodes that did not report, with the reason.
	Silent []string
}

// noStreams is used without event streams.
type noStreams struct{}

var errNoStreams = errors.New("this node does not read event streams")

func (noStreams) Statuses(context.Context, string, bool) StreamStatuses { return StreamStatuses{} }
func (noStreams) ResolveStart(context.Context, *subscription.Subscription, *subscription.Cluster) ([]subscription.TopicStart, error) {
	return nil, errNoStreams
}
func (noStreams) Record(context.Context, subscription.RecordID) (subscription.Record, error) {
	return subscription.Record{}, subscription.ErrNotRead
}
func (noStreams) RetryRecord(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}
func (noStreams) SkipRecord(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}
