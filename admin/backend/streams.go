package backend

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/admin/query"
	"platform/admin/subscriptions"
	"platform/internal/cluster"
	"platform/internal/subscription"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// StreamNodes sends requests to the nodes that read event streams.
type StreamNodes interface {
	// Streams returns the statuses of one subscription, or of all if id is empty, by node.
	Streams(ctx context.Context, id string, brief bool) []cluster.NodeStreams
	// StreamRecord shows, retries or skips a record on a node. Errors can be
	// subscription.ErrNotRead and ErrNotBlocked.
	StreamRecord(ctx context.Context, node metadata.Node, id subscription.RecordID, action nodepb.StreamRecordAction) (subscription.Record, error)
	// All returns the nodes.
	All() []metadata.Node
	// Partitions returns the partitions of the cluster.
	Partitions() []metadata.Partition
	// DeadLetters lists the dead letters that a node stores as a leader, without their contents.
	DeadLetters(ctx context.Context, node metadata.Node, subscription string, after *subscription.RecordID, limit int) (subscription.DeadLetterPage, error)
	// DeadLetter returns one. Errors can be subscription.ErrNotRead and ErrNoDeadLetter.
	DeadLetter(ctx context.Context, node metadata.Node, id subscription.RecordID) (subscription.DeadLetter, error)
}

// StartResolver resolves the start of a subscription, with requests to brokers.
type StartResolver interface {
	ResolveStart(ctx context.Context, s *subscription.Subscription, c *subscription.Cluster) ([]subscription.TopicStart, error)
}

// Streams implements the operations of the admin API on event streams. It is safe for concurrent
// use.
type Streams struct {
	Nodes    StreamNodes
	Resolver StartResolver // nil: this node reads no event streams
	Store    StreamStore
	Static   []subscription.Cluster // Kafka clusters of the configuration
}

var _ subscriptions.Streams = (*Streams)(nil)

// StreamStore has the records of subscriptions and Kafka clusters.
type StreamStore interface {
	Subscriptions() ([]subscription.Subscription, <-chan struct{})
	KafkaClusters() []subscription.Cluster
}

// resolveTimeout bounds how long a request waits for brokers.
const resolveTimeout = 10 * time.Second

// Statuses implements subscriptions.Streams.
func (s *Streams) Statuses(ctx context.Context, id string, brief bool) subscriptions.Statuses {
	out := subscriptions.Statuses{ByID: map[string][]subscription.Status{}}
	for _, n := range s.Nodes.Streams(ctx, id, brief) {
		switch {
		case status.Code(n.Err) == codes.Unimplemented:
			out.Silent = append(out.Silent, n.Node.Name+": its server is too old")
		case n.Err != nil:
			out.Silent = append(out.Silent, n.Node.Name+": "+n.Err.Error())
		}
		for i := range n.Statuses {
			out.ByID[n.Statuses[i].Subscription] = append(out.ByID[n.Statuses[i].Subscription], n.Statuses[i])
		}
	}
	return out
}

// States returns all subscriptions with their merged states, for SQL.
func (s *Streams) States(ctx context.Context) []query.SubscriptionState {
	list, _ := s.Store.Subscriptions()
	if len(list) == 0 {
		return nil
	}
	statuses := s.Statuses(ctx, "", false)
	states := make([]query.SubscriptionState, len(list))
	for i := range list {
		sub := &list[i]
		named := func(c subscription.Cluster) bool { return c.Name == sub.Cluster }
		known := slices.ContainsFunc(s.Static, named) || slices.ContainsFunc(s.Store.KafkaClusters(), named)
		states[i] = query.SubscriptionState{Subscription: *sub, Status: subscription.Merge(sub, statuses.ByID[sub.ID], known)}
	}
	return states
}

// ResolveStart implements subscriptions.Streams.
func (s *Streams) ResolveStart(ctx context.Context, sub *subscription.Subscription, c *subscription.Cluster) ([]subscription.TopicStart, error) {
	if s.Resolver == nil {
		return nil, errors.New("this server does not read event streams")
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	return s.Resolver.ResolveStart(ctx, sub, c)
}

// Record implements subscriptions.Streams.
func (s *Streams) Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error) {
	return s.onRecord(ctx, id, nodepb.StreamRecordAction_READ)
}

// RetryRecord implements subscriptions.Streams.
func (s *Streams) RetryRecord(ctx context.Context, id subscription.RecordID) error {
	_, err := s.onRecord(ctx, id, nodepb.StreamRecordAction_RETRY)
	return err
}

// SkipRecord implements subscriptions.Streams.
func (s *Streams) SkipRecord(ctx context.Context, id subscription.RecordID) error {
	_, err := s.onRecord(ctx, id, nodepb.StreamRecordAction_SKIP)
	return err
}

// onRecord sends a request about a record to the node that reads its topic partition.
func (s *Streams) onRecord(ctx context.Context, id subscription.RecordID, action nodepb.StreamRecordAction) (subscription.Record, error) {
	var readers []metadata.Node
	for _, n := range s.Nodes.Streams(ctx, id.Subscription, false) {
		if reads(n.Statuses, id) {
			readers = append(readers, n.Node)
		}
	}
	if len(readers) == 0 { // the leader knows whether there is such a topic partition
		readers = s.Nodes.All()
	}
	return onLeader(ctx, readers, func(ctx context.Context, node metadata.Node) (subscription.Record, error) {
		return s.Nodes.StreamRecord(ctx, node, id, action)
	})
}

func reads(statuses []subscription.Status, id subscription.RecordID) bool {
	for i := range statuses {
		for j := range statuses[i].Partitions {
			if p := &statuses[i].Partitions[j]; p.Topic == id.Topic && p.Partition == id.Partition {
				return true
			}
		}
	}
	return false
}

// SubscriptionStore has the records of subscriptions.
type SubscriptionStore interface {
	Subscriptions() ([]subscription.Subscription, <-chan struct{})
	RemoveSubscription(ctx context.Context, id string) error
}

const (
	// drainPoll is how often it is checked whether deleted subscriptions have records in flight.
	drainPoll = time.Second
	// drainTimeout is how long a deleted subscription may have records in flight, and nodes may
	// be silent about it. Records in flight after that may be lost or delivered.
	drainTimeout = 30 * time.Second
)

// Reaper removes deleted subscriptions once nothing of them is in flight, while this node leads
// the metadata.
type Reaper struct {
	Store SubscriptionStore
	Nodes StreamNodes
	Leads func() bool
	Now   func() time.Time
	Log   *slog.Logger
}

// Run removes subscriptions until ctx ends.
func (r *Reaper) Run(ctx context.Context) error {
	ticker := time.NewTicker(drainPoll)
	defer ticker.Stop()
	for {
		if r.Leads() {
			r.round(ctx)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *Reaper) round(ctx context.Context) {
	list, _ := r.Store.Subscriptions()
	for i := range list {
		if !list[i].Draining || !r.drained(ctx, &list[i]) {
			continue
		}
		if err := r.Store.RemoveSubscription(ctx, list[i].ID); err != nil && ctx.Err() == nil {
			r.Log.Warn("deleted subscription could not be removed, retrying", "subscription_id", list[i].ID, "err", err)
			continue
		}
		r.Log.Info("subscription removed", "subscription_id", list[i].ID, "source", list[i].Source.String(), "sink", list[i].Sink.String())
	}
}

// drained reports whether all nodes have noticed the deletion and have nothing in flight, or
// have had enough time for it.
func (r *Reaper) drained(ctx context.Context, sub *subscription.Subscription) bool {
	if r.Now().Sub(sub.ModifiedAt) > drainTimeout {
		return true
	}
	for _, n := range r.Nodes.Streams(ctx, sub.ID, false) {
		if n.Err != nil {
			return false
		}
		for i := range n.Statuses {
			for j := range n.Statuses[i].Partitions {
				if p := &n.Statuses[i].Partitions[j]; p.InFlight > 0 || p.State != subscription.Draining {
					return false
				}
			}
		}
	}
	return true
}
