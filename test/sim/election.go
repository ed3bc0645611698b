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

// suspicionPeriod is how long a node is a suspect after the fault.
const suspicionPeriod = 300 * time.Millisecond

// suspectFor makes clients read from a node, which may have lost a leadership without
// knowing.
func (s *Sim) suspectFor(n *node, d time.Duration) {
	s.suspect.Store(n)
	time.AfterFunc(d, func() { s.suspect.CompareAndSwap(n, nil) })
}

// electWithoutInbound elects another voter while the leader receives no messages of the voters, although
// they receive its messages; messages that were sent to it earlier arrive after the election.
// Replicas without a vote still reach the leader; sometimes they receive no messages of the voters
// either. All of this takes less than the leader's lease.
func (s *Sim) electWithoutInbound(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	n := s.leader(id)
	if n == nil {
		return nil
	}
	voters := votersOf(s.table.replicas(id))
	nonvotersToo := rng.IntN(2) == 0
	ways := slices.DeleteFunc(s.allLinks(), func(w link) bool {
		isolated := w.to == n.name || nonvotersToo && !holds(voters, w.to) && slices.Contains(s.names(), w.to)
		return !isolated || w.from == n.name || !holds(voters, w.from)
	})
	undo := s.apply(ways, hold)
	before, after := time.Duration(60+rng.IntN(120))*time.Millisecond, time.Duration(50+rng.IntN(200))*time.Millisecond
	s.trace.add("nemesis: %s receives nothing, election for partition %d in %s", n.name, id, before)
	s.suspectFor(n, before+after+suspicionPeriod)
	for _, v := range voters {
		if string(v.ID) != n.name {
			time.AfterFunc(before, func() { s.triggerElection(s.node(string(v.ID)), id) })
			break
		}
	}
	time.AfterFunc(before+after, undo)
	return nil
}

// electInTurn makes the voters of a partition stand for election in turn, so that leaders
// are deposed while they announce their epochs.
func (s *Sim) electInTurn(rng *rand.Rand) func() {
	id := rng.Uint32N(s.opts.Partitions)
	voters := votersOf(s.table.replicas(id))
	go func() {
		for i := range 4 + rng.IntN(8) {
			s.triggerElection(s.node(string(voters[i%len(voters)].ID)), id)
			time.Sleep(time.Duration(1+rng.IntN(20)) * time.Millisecond)
		}
	}()
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
