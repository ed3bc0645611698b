package cluster

import (
	"context"
	"fmt"

	"platform/partition"
	nodepb "platform/proto/node"
)

// Digest returns the digest of this node's replica of a partition in a round.
func (s *Server) Digest(_ context.Context, req *nodepb.DigestRequest) (*nodepb.DigestResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.DigestResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	p := s.Replica(req.Partition)
	if p == nil {
		return &nodepb.DigestResponse{Error: fmt.Sprintf("this node has no replica of partition %d", req.Partition)}, nil
	}
	if own := string(p.LocalID()); req.Replica != own {
		return &nodepb.DigestResponse{Error: fmt.Sprintf("the replica here is %s, not %s", own, req.Replica)}, nil
	}
	result := p.Digest(partition.DigestRound{Epoch: req.Epoch, Round: req.Round})
	resp := &nodepb.DigestResponse{Missed: result.Missed}
	if r := result.Result; r != nil {
		resp.Known, resp.Rows, resp.Next, resp.Sum = true, r.Rows, r.Next, r.Sum
	}
	return resp, nil
}
