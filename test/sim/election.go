package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"platform/partition"
	pb "platform/proto/node"
)

// forceElection starts an election at a random node.
func (s *Sim) forceElection(rng *rand.Rand) func() {
	s.triggerElection(s.randomNode(rng), rng.Uint32N(s.opts.Partitions))
	return nil
}

// electWhileDeaf elects another node while the leader cannot hear the others, which can
// hear it; messages sent to it before arrive after the election.
func (s *Sim) electWhileDeaf(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	n := s.leader(id)
	if n == nil {
		return nil
	}
	ways := slices.DeleteFunc(s.linksOf(n.name), func(w link) bool { return w.to != n.name })
	undo := s.apply(ways, hold)
	for _, other := range s.nodes {
		if other != n {
			s.triggerElection(other, id)
			break
		}
	}
	time.AfterFunc(time.Duration(100+rng.IntN(500))*time.Millisecond, undo)
	return nil
}

// triggerElection makes a node start an election immediately, as in a leadership transfer,
func (s *Sim) triggerElection(n *node, id uint32) {
	to := s.net.host(addressOf(n.name))
	if to == nil {
		return
	}
	s.trace.add("nemesis: start election on %s for partition %d", n.name, id)
	ctx, cancel := context.WithTimeout(to.ctx, time.Second)
	from := newHost(s.net, "nemesis")
	stream, err := pb.NewRaftTransportClient(from.dial(addressOf(n.name))).Exchange(ctx)
	if err != nil {
		cancel()
		return
	}
	_ = stream.Send(&pb.RaftFrame{Hello: &pb.Hello{ClusterId: clusterID, NodeId: "nemesis", Address: "nemesis:1"}})
	_ = stream.Send(&pb.RaftFrame{
		Sequence: 1, GroupId: partition.GroupID(id), TimeoutMs: 1000, Target: n.name,
		TimeoutNowRequest: &pb.TimeoutNowRequest{Header: &pb.Header{ProtocolVersion: int64(raft.ProtocolVersionMax)}},
	})
	go func() {
		defer cancel()
		for range 2 { // hello and response
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
}
