package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/feature"
	"platform/internal/version"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
	nodepb "platform/proto/node"
)

// stateQuarantined is the state of a replica in quarantine, in addition to those of Raft.
const stateQuarantined = "Quarantined"

// Status returns the status of this node and its replicas. A node that joins has none.
func (s *Server) Status(_ context.Context, req *nodepb.StatusRequest) (*nodepb.StatusResponse, error) {
	_, err := s.member(req.ClusterId)
	if errors.Is(err, errNoMetadata) {
		return s.status(), nil
	}
	if err != nil {
		return &nodepb.StatusResponse{Error: err.Error()}, nil //nolint:nilerr // the response has the error
	}
	r := s.status()
	if req.Details {
		s.detail(r)
	}
	return r, nil
}

// status is the status of this node, once it is part of a cluster.
func (s *Server) status() *nodepb.StatusResponse {
	meta := s.store.Load()
	r := &nodepb.StatusResponse{
		Name: s.self.Node, Incarnation: s.self.Incarnation, Version: version.Version(),
		StartedAt: s.started.UnixMilli(), Draining: s.cfg.Draining(), FlowControl: s.cfg.FlowControl,
		FeatureLevel: uint32(feature.Supported()), FeatureLevelHold: s.cfg.HoldFeatureLevel, Disk: s.cfg.Disk(),
		SecretKeys: meta.SecretKeys(), MetadataApplied: meta.AppliedIndex(), MetadataLeader: string(meta.Group().Leader().ID),
	}
	if s.cfg.Usage != nil {
		u := s.cfg.Usage()
		r.Usage = &nodepb.NodeUsage{Cpu: u.CPU, Cores: uint32(u.Cores), Memory: u.Memory, MemoryLimit: u.MemoryLimit, DiskFree: u.DiskFree, DiskTotal: u.DiskTotal}
	}
	if s.cfg.FailedAttempts != nil {
		r.FailedAttempts = s.cfg.FailedAttempts()
	}
	for id := range s.partitions() {
		replicas := s.replicas.Load()
		if reason := replicas.Quarantine(id); reason != "" {
			r.Replicas = append(r.Replicas, &nodepb.ReplicaStatus{Partition: id, State: stateQuarantined, Quarantine: reason, ReplicaId: string(replicas.ReplicaID(id))})
		} else if p := replicas.Replica(id); p != nil {
			replica := replicaStatus(p.Status())
			replica.ReplicaId = string(p.LocalID())
			r.Replicas = append(r.Replicas, replica)
		}
	}
	return r
}

// detail adds the fields that only queries need.
func (s *Server) detail(r *nodepb.StatusResponse) {
	r.StorageVersion = store.FormatVersion
	for _, set := range s.cfg.Settings() {
		r.Settings = append(r.Settings, &nodepb.NodeSetting{Key: set.Key, Value: set.Value})
	}
	for _, replica := range r.Replicas {
		p := s.Replica(replica.Partition)
		if p == nil {
			continue
		}
		if last, err := p.LastPosition(); err == nil {
			replica.LastTerm = last.Term
		}
		replica.Voters = p.Voters()
		replica.Rules = uint64(p.RulesVersion())
	}
}

func replicaStatus(st partition.Status) *nodepb.ReplicaStatus {
	r := &nodepb.ReplicaStatus{
		Partition: st.ID, State: st.State, Leading: st.Leading,
		Leader: string(st.Leader.ID), LeaderAddress: string(st.Leader.Address),
		Term: st.Term, Applied: st.Applied, Commit: st.Commit, Last: st.Last, Snapshot: st.Snapshot,
		MembersIndex: st.Members.Index,
	}
	if !st.Contact.IsZero() {
		r.LeaderSilence = max(1, time.Since(st.Contact).Milliseconds())
	}
	for _, id := range st.Newest {
		r.Newest = append(r.Newest, string(id))
	}
	for _, m := range st.Members.Servers {
		member := &nodepb.ReplicaMember{Id: string(m.ID), Address: string(m.Address), Voter: m.Suffrage == raft.Voter}
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

// Statuses are the statuses of nodes, by node ID.
type Statuses map[uint32]*nodepb.StatusResponse

// Leader returns the node that leads a partition and serves it, among those that responded.
func (all Statuses) Leader(partition uint32) (leader uint32, known bool) {
	term := uint64(0)
	for id, st := range all {
		for _, r := range st.Replicas {
			if r.Partition == partition && r.Leading && (!known || r.Term > term) {
				leader, term, known = id, r.Term, true
			}
		}
	}
	return leader, known
}

// Announcements returns the nodes' announcements of feature levels, by node ID.
func (all Statuses) Announcements() map[uint32]metadata.Announcement {
	list := make(map[uint32]metadata.Announcement, len(all))
	for id, st := range all {
		list[id] = metadata.Announcement{
			Server: ServerID(st.Name, st.Incarnation), Supported: feature.Announced(st.FeatureLevel), Hold: st.FeatureLevelHold,
		}
	}
	return list
}

// LeaderExpiry bounds how long a recovery waits until a leader without a majority has stepped
// down, after its lease, and its followers have forgotten it, after their heartbeat timeout,
// which Raft randomizes up to twofold. These are 5.5 seconds together; the rest is reserve
// for loaded machines. A leader that is still known then has a majority.
const LeaderExpiry = 15 * time.Second

// KnownLeader returns the Raft server ID of the leader that any replica of a partition knows,
// member or not; "" if none knows one.
func (all Statuses) KnownLeader(partition uint32) string {
	var leader string
	term := uint64(0)
	for _, st := range all {
		for _, r := range st.Replicas {
			if r.Partition == partition && r.Leader != "" && r.Quarantine == "" && (r.Term > term || r.Term == term && r.Leader < leader || leader == "") {
				leader, term = r.Leader, r.Term
			}
		}
	}
	return leader
}
