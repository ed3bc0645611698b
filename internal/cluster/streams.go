package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"platform/internal/subscription"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// streamsTimeout bounds a request for the statuses of the event streams of a node.
	streamsTimeout = 3 * time.Second
	// recordTimeout bounds an operation on a record, which may have to be fetched.
	recordTimeout = 15 * time.Second
)

// Streams reads event streams on this node.
type Streams interface {
	// Statuses returns the state of one subscription, or of all if id is empty. brief leaves out
	// topic partitions.
	Statuses(id string, brief bool) []subscription.Status
	// Record returns a record that blocks its topic partition. Errors can be
	// subscription.ErrNotRead and ErrNotBlocked, also of the next methods.
	Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error)
	// Retry tries to deliver such a record again, Skip leaves it out.
	Retry(ctx context.Context, id subscription.RecordID) error
	Skip(ctx context.Context, id subscription.RecordID) error
}

// noStreams is used until there are some.
type noStreams struct{}

func (noStreams) Statuses(string, bool) []subscription.Status { return nil }
func (noStreams) Record(context.Context, subscription.RecordID) (subscription.Record, error) {
	return subscription.Record{}, subscription.ErrNotRead
}
func (noStreams) Retry(context.Context, subscription.RecordID) error { return subscription.ErrNotRead }
func (noStreams) Skip(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}

// OpenStreams provides the event streams of this node.
func (s *Server) OpenStreams(streams Streams) { s.streams.Store(&streams) }

func (s *Server) openStreams() Streams {
	if streams := s.streams.Load(); streams != nil {
		return *streams
	}
	return noStreams{}
}

// Subscriptions returns the state of the event streams that the node reads.
func (s *Server) Subscriptions(_ context.Context, req *nodepb.SubscriptionsRequest) (*nodepb.SubscriptionsResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.SubscriptionsResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	out := &nodepb.SubscriptionsResponse{}
	statuses := s.openStreams().Statuses(req.Subscription, req.Brief)
	for i := range statuses {
		out.Statuses = append(out.Statuses, streamToProto(&statuses[i]))
	}
	return out, nil
}

// StreamRecord shows, retries or skips a record that blocks its topic partition.
func (s *Server) StreamRecord(ctx context.Context, req *nodepb.StreamRecordRequest) (*nodepb.StreamRecordResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.StreamRecordResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	streams := s.openStreams()
	id := subscription.RecordID{Subscription: req.Subscription, Topic: req.Topic, Partition: req.Partition, Offset: req.Offset}
	var record subscription.Record
	var err error
	switch req.Action {
	case nodepb.StreamRecordAction_READ:
		record, err = streams.Record(ctx, id)
	case nodepb.StreamRecordAction_RETRY:
		err = streams.Retry(ctx, id)
	case nodepb.StreamRecordAction_SKIP:
		err = streams.Skip(ctx, id)
	default:
		err = errors.New("the action is unknown")
	}
	if err != nil {
		return &nodepb.StreamRecordResponse{
			Error: err.Error(), NotRead: errors.Is(err, subscription.ErrNotRead), NotBlocked: errors.Is(err, subscription.ErrNotBlocked),
		}, nil
	}
	out := &nodepb.StreamRecordResponse{}
	if req.Action == nodepb.StreamRecordAction_READ {
		out.Record = recordToProto(&record)
	}
	return out, nil
}

// NodeStreams are the event streams that a node reads, or the reason why they are not known.
type NodeStreams struct {
	Node     metadata.Node
	Statuses []subscription.Status
	Err      error
}

// Streams requests the state of the event streams of all nodes, including this one, in the
// order of their names.
func (n *Nodes) Streams(ctx context.Context, id string, brief bool) []NodeStreams {
	ctx, cancel := context.WithTimeout(ctx, streamsTimeout)
	defer cancel()
	layout, _ := n.server.Metadata().Layout()
	all := make([]NodeStreams, len(layout.Nodes))
	var wg sync.WaitGroup
	for i, node := range layout.Nodes {
		all[i].Node = node
		if n.isSelf(node) {
			all[i].Statuses = n.server.openStreams().Statuses(id, brief)
			continue
		}
		wg.Go(func() { all[i].Statuses, all[i].Err = n.streamsOf(ctx, node, id, brief) })
	}
	wg.Wait()
	for i := range all {
		for j := range all[i].Statuses {
			for k := range all[i].Statuses[j].Partitions {
				all[i].Statuses[j].Partitions[k].Node = all[i].Node.ID
			}
		}
	}
	return all
}

func (n *Nodes) streamsOf(ctx context.Context, node metadata.Node, id string, brief bool) ([]subscription.Status, error) {
	peer, err := n.of(node)
	if err != nil {
		return nil, err
	}
	resp, err := peer.Subscriptions(ctx, &nodepb.SubscriptionsRequest{ClusterId: n.server.ClusterID(), Subscription: id, Brief: brief})
	if err == nil && resp.Error != "" {
		err = errors.New(resp.Error)
	}
	if err != nil {
		return nil, err
	}
	var out []subscription.Status
	for _, s := range resp.Statuses {
		out = append(out, streamFromProto(s))
	}
	return out, nil
}

// StreamRecord shows, retries or skips a record that blocks its topic partition, on the node
// that reads it. Errors can be subscription.ErrNotRead and ErrNotBlocked.
func (n *Nodes) StreamRecord(ctx context.Context, node metadata.Node, id subscription.RecordID, action nodepb.StreamRecordAction) (subscription.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	req := &nodepb.StreamRecordRequest{
		ClusterId: n.server.ClusterID(), Subscription: id.Subscription, Topic: id.Topic, Partition: id.Partition, Offset: id.Offset, Action: action,
	}
	var resp *nodepb.StreamRecordResponse
	var err error
	if n.isSelf(node) {
		resp, err = n.server.StreamRecord(ctx, req)
	} else {
		var peer nodepb.NodeClusterClient
		if peer, err = n.of(node); err == nil {
			resp, err = peer.StreamRecord(ctx, req)
		}
	}
	switch {
	case err != nil:
		return subscription.Record{}, err
	case resp.NotRead:
		return subscription.Record{}, subscription.ErrNotRead
	case resp.NotBlocked:
		return subscription.Record{}, subscription.ErrNotBlocked
	case resp.Error != "":
		return subscription.Record{}, errors.New(resp.Error)
	}
	return recordFromProto(id, resp.Record), nil
}
