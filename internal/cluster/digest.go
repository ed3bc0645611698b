package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"platform/partition"
	"platform/partition/machine"
	nodepb "platform/proto/node"
)

// digestRequestTimeout bounds one question for the result of a round of digests.
const digestRequestTimeout = 2 * time.Second

// fetchDigest requests another replica's result of a round.
func (n *Node) fetchDigest(ctx context.Context, to raft.Server, id uint32, r partition.DigestRound) (partition.DigestAnswer, error) {
	address := string(to.Address)
	if now := n.addresses.of(to.ID); now != "" {
		address = string(now)
	}
	peer, err := n.peers.at(address)
	if err != nil {
		return partition.DigestAnswer{}, err
	}
	cluster, _ := n.metadata.Cluster()
	ctx, cancel := context.WithTimeout(ctx, digestRequestTimeout)
	defer cancel()
	resp, err := peer.Digest(ctx, &nodepb.DigestRequest{
		ClusterId: cluster.ID, Replica: string(to.ID), Partition: id, Epoch: r.Epoch, Round: r.Round,
	})
	if err == nil && resp.Error != "" {
		err = errors.New(resp.Error)
	}
	if err != nil {
		return partition.DigestAnswer{}, fmt.Errorf("ask %s for a digest of partition %d: %w", address, id, err)
	}
	answer := partition.DigestAnswer{Missed: resp.Missed}
	if resp.Known {
		answer.Result = &machine.DigestResult{Epoch: r.Epoch, Round: r.Round, Rows: resp.Rows, Next: resp.Next, Sum: resp.Sum}
	}
	return answer, nil
}

// Digest tells what this node's replica of a partition found in a round.
func (s *clusterServer) Digest(_ context.Context, req *nodepb.DigestRequest) (*nodepb.DigestResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.DigestResponse{Error: err.Error()}, nil //nolint:nilerr // the answer tells
	}
	var p *partition.Partition
	if req.Partition < s.partitions.Load() {
		p = s.local(req.Partition)
	}
	if p == nil {
		return &nodepb.DigestResponse{Error: fmt.Sprintf("this node has no replica of partition %d", req.Partition)}, nil
	}
	if own := string(p.LocalID()); req.Replica != own {
		return &nodepb.DigestResponse{Error: fmt.Sprintf("the replica here is %s, not %s", own, req.Replica)}, nil
	}
	answer := p.Digest(partition.DigestRound{Epoch: req.Epoch, Round: req.Round})
	resp := &nodepb.DigestResponse{Missed: answer.Missed}
	if r := answer.Result; r != nil {
		resp.Known, resp.Rows, resp.Next, resp.Sum = true, r.Rows, r.Next, r.Sum
	}
	return resp, nil
}
