package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"platform/internal/feature"
	"platform/internal/version"
	"platform/partition"
	"platform/partition/store"
	nodepb "platform/proto/node"
)

// stateQuarantined is the state of a replica in quarantine, beside those of Raft.
const stateQuarantined = "Quarantined"

// statusTimeout bounds how long another node is asked how it is.
const statusTimeout = time.Second

// Status tells what this node knows of its replicas.
func (s *clusterServer) Status(_ context.Context, req *nodepb.StatusRequest) (*nodepb.StatusResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.StatusResponse{Error: err.Error()}, nil //nolint:nilerr // the answer tells
	}
	r := s.status()
	if req.Details {
		s.detail(r)
	}
	return r, nil
}

// status is what this node says about itself, once it is part of a cluster.
func (s *clusterServer) status() *nodepb.StatusResponse {
	meta := s.store.Load()
	r := &nodepb.StatusResponse{
		Name: s.self.Node, Incarnation: s.self.Incarnation, Version: version.Version(),
		StartedAt: s.started.UnixMilli(), Draining: s.draining.Load(), FlowControl: s.flow,
		FeatureLevel: uint32(feature.Supported()), FeatureLevelHold: s.hold, Disk: s.disk(),
		MetadataApplied: meta.AppliedIndex(), MetadataLeader: string(meta.Group().Leader().ID),
	}
	for id := range s.partitions.Load() {
		if reason := s.quarantine(id); reason != "" {
			r.Replicas = append(r.Replicas, &nodepb.ReplicaStatus{Partition: id, State: stateQuarantined, Quarantine: reason, ReplicaId: s.replica(id)})
		} else if p := s.local(id); p != nil {
			replica := replicaStatus(p.Status())
			replica.ReplicaId = string(p.LocalID())
			r.Replicas = append(r.Replicas, replica)
		}
	}
	return r
}

// detail adds what only queries want to know.
func (s *clusterServer) detail(r *nodepb.StatusResponse) {
	r.StorageVersion = store.FormatVersion
	for _, set := range s.settings() {
		r.Settings = append(r.Settings, &nodepb.NodeSetting{Key: set.Key, Value: set.Value})
	}
	for _, replica := range r.Replicas {
		p := s.local(replica.Partition)
		if p == nil {
			continue
		}
		if last, err := p.LastPosition(); err == nil {
			replica.LastTerm = last.Term
		}
		replica.Voters = p.Voters()
		version, err := p.RulesVersion()
		if err != nil {
			s.log.Warn("the rule book of a partition cannot be read", "partition_id", replica.Partition, "err", err)
			continue
		}
		replica.Rules = uint64(version)
	}
}

func replicaStatus(st partition.Status) *nodepb.ReplicaStatus {
	r := &nodepb.ReplicaStatus{
		Partition: st.ID, State: st.State, Leading: st.Leading,
		Leader: string(st.Leader.ID), LeaderAddress: string(st.Leader.Address),
		Term: st.Term, Applied: st.Applied, Commit: st.Commit, Last: st.Last, Snapshot: st.Snapshot,
		MembersIndex: st.Members.Index,
	}
	for _, m := range st.Members.Servers {
		member := &nodepb.ReplicaMember{Id: string(m.ID), Address: string(m.Address), Voter: isVoter(m)}
		for _, f := range st.Followers {
			if f.ID == m.ID {
				member.Match, member.Lag, member.Live, member.CaughtUp = f.Match, f.Lag, f.Live, f.CaughtUp
				if !f.Contact.IsZero() {
					member.Contact = f.Contact.UnixMilli()
				}
			}
		}
		r.Members = append(r.Members, member)
	}
	return r
}

// statuses asks all members how they are, this node included, by node id. Those that
// do not answer in time are left out.
func (n *Node) statuses(ctx context.Context) map[uint32]*nodepb.StatusResponse {
	return n.ask(ctx, false)
}

// ask is statuses, with details if they are wanted.
func (n *Node) ask(ctx context.Context, details bool) map[uint32]*nodepb.StatusResponse {
	return n.askWithin(ctx, statusTimeout, details)
}

// askWithin is ask with another timeout.
func (n *Node) askWithin(ctx context.Context, timeout time.Duration, details bool) map[uint32]*nodepb.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	layout, _ := n.metadata.Layout()
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := make(map[uint32]*nodepb.StatusResponse, len(layout.Nodes))
	for _, node := range layout.Nodes {
		if node.ServerID() == n.replica().ID {
			own := n.cluster.status()
			if details {
				n.cluster.detail(own)
			}
			mu.Lock()
			all[node.ID] = own
			mu.Unlock()
			continue
		}
		address := string(n.addresses.of(node.ServerID()))
		wg.Go(func() {
			if st, err := n.askStatus(ctx, address, details); err == nil {
				mu.Lock()
				defer mu.Unlock()
				all[node.ID] = st
			}
		})
	}
	wg.Wait()
	return all
}

// askStatus asks the node at an address how it is.
func (n *Node) askStatus(ctx context.Context, address string, details bool) (*nodepb.StatusResponse, error) {
	peer, err := n.peers.at(address)
	if err != nil {
		return nil, err
	}
	cluster, _ := n.metadata.Cluster()
	st, err := peer.Status(ctx, &nodepb.StatusRequest{ClusterId: cluster.ID, Details: details})
	if err == nil && st.Error != "" {
		err = errors.New(st.Error)
	}
	return st, err
}
