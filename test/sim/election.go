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

// forceElection makes a node stand for election.
func (s *Sim) forceElection(rng *rand.Rand) func() {
	s.stand(s.any(rng), rng.Uint32N(s.opts.Partitions))
	return nil
}

// coup has another node elected while a leader does not hear the others, who hear it:
// what they have said to it before gets there after.
func (s *Sim) coup(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	n := s.leader(id)
	if n == nil {
		return nil
	}
	ways := slices.DeleteFunc(s.around(n.name), func(w way) bool { return w.to != n.name })
	undo := s.weather(ways, hold)
	for _, other := range s.nodes {
		if other != n {
			s.stand(other, id)
			break
		}
	}
	time.AfterFunc(time.Duration(100+rng.IntN(500))*time.Millisecond, undo)
	return nil
}

// stand makes a node stand for election at once, as a leader does that hands over, but
// without the leader's knowledge.
func (s *Sim) stand(n *node, id uint32) {
	to := s.net.host(addressOf(n.name))
	if to == nil {
		return
	}
	s.trace.add("nemesis: %s is to stand for partition %d", n.name, id)
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
		for range 2 { // its introduction and its answer
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
}
