package cluster

import (
	"context"
	"errors"
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
	// Record returns a record. Errors can be subscription.ErrNotRead and ErrNoRecord.
	Record(ctx context.Context, id subscription.RecordID) (subscription.Record, error)
	// Retry tries to deliver a record again that blocks its topic partition, Skip leaves it out.
	// They return when that is stored. Errors can be subscription.ErrNotRead and ErrNotBlocked.
	Retry(ctx context.Context, id subscription.RecordID) error
	Skip(ctx context.Context, id subscription.RecordID) error
	// ListDeadLetters returns up to limit dead letters that this node stores as a leader, behind one
	// or from the first on if that is nil, without keys, values and headers.
	ListDeadLetters(subscription string, after *subscription.RecordID, limit int) (subscription.DeadLetterPage, error)
	// DeadLetter returns a dead letter. Errors can be subscription.ErrNotRead and ErrNoDeadLetter,
	// also of the next methods.
	DeadLetter(id subscription.RecordID) (subscription.DeadLetter, error)
	// RetryDeadLetter delivers a dead letter and deletes it; the error can also be
	// subscription.ErrUndeliverable. DropDeadLetter only deletes it.
	RetryDeadLetter(ctx context.Context, id subscription.RecordID) error
	DropDeadLetter(ctx context.Context, id subscription.RecordID) error
}

// noStreams is used until there are some.
type noStreams struct{}

func (noStreams) Statuses(string, bool) []subscription.Status { return nil }
func (noStreams) Record(context.Context, subscription.RecordID) (subscription.Record, error) {
	return subscription.Record{}, subscription.ErrNotRead
}
func (noStreams) Retry(context.Context, subscription.RecordID) error { return subscription.ErrNotRead }
func (noStreams) Skip(context.Context, subscription.RecordID) error  { return subscription.ErrNotRead }

func (noStreams) ListDeadLetters(string, *subscription.RecordID, int) (page subscription.DeadLetterPage, err error) {
	return page, nil
}

func (noStreams) DeadLetter(subscription.RecordID) (subscription.DeadLetter, error) {
	return subscription.DeadLetter{}, subscription.ErrNotRead
}

func (noStreams) RetryDeadLetter(context.Context, subscription.RecordID) error {
	return subscription.ErrNotRead
}

func (noStreams) DropDeadLetter(context.Context, subscription.RecordID) error {
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

// StreamRecord shows, retries or skips a record that blocks its topic partition, or shows, retries or
// drops a dead letter.
func (s *Server) StreamRecord(ctx context.Context, req *nodepb.StreamRecordRequest) (*nodepb.StreamRecordResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.StreamRecordResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	streams := s.openStreams()
	id := subscription.RecordID{Subscription: req.Subscription, Topic: req.Topic, Partition: req.Partition, Offset: req.Offset}
	out := &nodepb.StreamRecordResponse{}
	var err error
	switch req.Action {
	case nodepb.StreamRecordAction_READ:
		var record subscription.Record
		record, err = streams.Record(ctx, id)
		out.Record = recordToProto(&record)
	case nodepb.StreamRecordAction_READ_DEAD_LETTER:
		var letter subscription.DeadLetter
		letter, err = streams.DeadLetter(id)
		out.DeadLetter = letterToProto(&letter)
	case nodepb.StreamRecordAction_RETRY_DEAD_LETTER:
		err = streams.RetryDeadLetter(ctx, id)
	case nodepb.StreamRecordAction_DROP_DEAD_LETTER:
		err = streams.DropDeadLetter(ctx, id)
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
			NotDead: errors.Is(err, subscription.ErrNoDeadLetter), Undeliverable: errors.Is(err, subscription.ErrUndeliverable),
			NoRecord: errors.Is(err, subscription.ErrNoRecord),
		}, nil
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
	return fromEach(layout.Nodes, func(node metadata.Node) NodeStreams {
		statuses, err := n.streamsOf(ctx, node, id, brief)
		for i := range statuses {
			for j := range statuses[i].Partitions {
				statuses[i].Partitions[j].Node = node.ID
			}
		}
		return NodeStreams{Node: node, Statuses: statuses, Err: err}
	})
}

func (n *Nodes) streamsOf(ctx context.Context, node metadata.Node, id string, brief bool) ([]subscription.Status, error) {
	if n.isSelf(node) {
		return n.server.openStreams().Statuses(id, brief), nil
	}
	req := &nodepb.SubscriptionsRequest{ClusterId: n.server.ClusterID(), Subscription: id, Brief: brief}
	resp, err := send(ctx, n, node, nodepb.NodeClusterClient.Subscriptions, req)
	if err := responseError(resp, err); err != nil {
		return nil, err
	}
	var out []subscription.Status
	for _, s := range resp.Statuses {
		out = append(out, streamFromProto(s))
	}
	return out, nil
}

// StreamRecord shows, retries or skips a record that blocks its topic partition, or retries or drops
// a dead letter, on the node that reads or stores it. Errors can be subscription.ErrNotRead,
// ErrNotBlocked, ErrNoRecord, ErrNoDeadLetter and ErrUndeliverable.
func (n *Nodes) StreamRecord(ctx context.Context, node metadata.Node, id subscription.RecordID, action nodepb.StreamRecordAction) (subscription.Record, error) {
	resp, err := n.streamRecord(ctx, node, id, action)
	return recordFromProto(id, resp.GetRecord()), err
}

// DeadLetter returns a dead letter that a node stores. Errors are those of StreamRecord.
func (n *Nodes) DeadLetter(ctx context.Context, node metadata.Node, id subscription.RecordID) (subscription.DeadLetter, error) {
	resp, err := n.streamRecord(ctx, node, id, nodepb.StreamRecordAction_READ_DEAD_LETTER)
	return letterFromProto(id.Subscription, resp.GetDeadLetter()), err
}

func (n *Nodes) streamRecord(ctx context.Context, node metadata.Node, id subscription.RecordID, action nodepb.StreamRecordAction) (*nodepb.StreamRecordResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	req := &nodepb.StreamRecordRequest{
		ClusterId: n.server.ClusterID(), Subscription: id.Subscription, Topic: id.Topic, Partition: id.Partition, Offset: id.Offset, Action: action,
	}
	resp, err := sendOrServe(ctx, n, node, nodepb.NodeClusterClient.StreamRecord, n.server.StreamRecord, req)
	switch {
	case err != nil:
		return nil, err
	case resp.NotRead:
		return nil, subscription.ErrNotRead
	case resp.NotBlocked:
		return nil, subscription.ErrNotBlocked
	case resp.NotDead:
		return nil, subscription.ErrNoDeadLetter
	case resp.Undeliverable:
		return nil, remoteError{resp.Error, subscription.ErrUndeliverable}
	case resp.NoRecord:
		return nil, remoteError{resp.Error, subscription.ErrNoRecord}
	case resp.Error != "":
		return nil, errors.New(resp.Error)
	}
	return resp, nil
}

// remoteError is an error of another node.
type remoteError struct {
	message string
	is      error
}

func (e remoteError) Error() string { return e.message }
func (e remoteError) Unwrap() error { return e.is }
