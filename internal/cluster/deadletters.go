package cluster

import (
	"context"

	"platform/internal/subscription"
	"platform/metadata"
	nodepb "platform/proto/node"
)

// DeadLetters lists the dead letters that this node stores as a leader.
func (s *Server) DeadLetters(_ context.Context, req *nodepb.DeadLettersRequest) (*nodepb.DeadLettersResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.DeadLettersResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	var after *subscription.RecordID
	if p := req.After; p != nil {
		after = &subscription.RecordID{Subscription: req.Subscription, Topic: p.Topic, Partition: p.Partition, Offset: p.Offset}
	}
	page, err := s.openStreams().ListDeadLetters(req.Subscription, after, int(min(req.Limit, maxLetters)))
	if err != nil {
		return &nodepb.DeadLettersResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	out := &nodepb.DeadLettersResponse{Partitions: page.Partitions}
	for i := range page.Letters {
		out.Letters = append(out.Letters, letterToProto(&page.Letters[i]))
	}
	return out, nil
}

// maxLetters bounds the dead letters of one response.
const maxLetters = 10_000

// DeadLetters lists up to limit dead letters of a subscription that a node stores as a leader, behind
// one or from the first on if that is nil, without keys, values and headers.
func (n *Nodes) DeadLetters(ctx context.Context, node metadata.Node, id string, after *subscription.RecordID, limit int) (subscription.DeadLetterPage, error) {
	var page subscription.DeadLetterPage
	if n.isSelf(node) {
		return n.server.openStreams().ListDeadLetters(id, after, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, streamsTimeout)
	defer cancel()
	req := &nodepb.DeadLettersRequest{ClusterId: n.server.ClusterID(), Subscription: id, Limit: uint32(limit)} //nolint:gosec // positive
	if after != nil {
		req.After = &nodepb.DeadLetterPlace{Topic: after.Topic, Partition: after.Partition, Offset: after.Offset}
	}
	resp, err := send(ctx, n, node, nodepb.NodeClusterClient.DeadLetters, req)
	if err := responseError(resp, err); err != nil {
		return page, err
	}
	page.Partitions = resp.Partitions
	for _, l := range resp.Letters {
		page.Letters = append(page.Letters, letterFromProto(id, l))
	}
	return page, nil
}

func letterToProto(l *subscription.DeadLetter) *nodepb.DeadLetter {
	return &nodepb.DeadLetter{
		Place:  &nodepb.DeadLetterPlace{Topic: l.Topic, Partition: l.Partition, Offset: l.Offset},
		Record: recordToProto(&l.Record), Reason: string(l.Reason), Message: l.Message, AtMs: unixMillis(l.At),
	}
}

func letterFromProto(id string, in *nodepb.DeadLetter) subscription.DeadLetter {
	p := in.GetPlace()
	record := subscription.RecordID{Subscription: id, Topic: p.GetTopic(), Partition: p.GetPartition(), Offset: p.GetOffset()}
	return subscription.DeadLetter{
		Record: recordFromProto(record, in.GetRecord()), Reason: subscription.Reason(in.GetReason()), Message: in.GetMessage(), At: timeOf(in.GetAtMs()),
	}
}
