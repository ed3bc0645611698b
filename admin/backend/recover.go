package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"platform/admin"
	"platform/internal/feature"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
	nodepb "platform/proto/node"
)

const (
	// recoverTimeout bounds one node's part in the recovery of a partition.
	recoverTimeout = 45 * time.Second
	// recoverPause is the time between two tries to have a partition to oneself.
	recoverPause = 10 * time.Millisecond
	// recoverStatusTimeout bounds how long a member is asked for its replicas. A member
	// that does not respond prevents the recovery, so a slow one is waited for.
	recoverStatusTimeout = 5 * time.Second
	// leaderExpiry bounds how long a recovery waits for a leader that has lost its
	// majority to be forgotten: by itself after its lease, by its followers after their
	// heartbeat timeout, which Raft doubles at random. These are 5.5 seconds together; the
	// rest is for machines under load. A leader that is still known then has a majority.
	leaderExpiry = 15 * time.Second
	// leaderPause is the time between two looks at who leads.
	leaderPause = 50 * time.Millisecond
)

// RecoverPartitions implements admin.Cluster.
func (c clusterAdmin) RecoverPartitions(ctx context.Context, ids []uint32, dryRun bool) ([]admin.PartitionRecovery, error) {
	n := c.n
	if !n.awaitMetadataLeader(ctx) {
		return nil, refuse(http.StatusServiceUnavailable, "the metadata has lost its majority, too: if most of its voters are lost for good, stop this server and run "+
			"`platform-server recover` on the node with the newest metadata (metadata_applied is %d here)", n.metadata.AppliedIndex())
	}
	if n.featureLevel() < feature.Level2 {
		return nil, refuse(http.StatusConflict, "recovering a partition needs feature level 2, the cluster is at level %d", n.featureLevel())
	}
	layout, _ := n.metadata.Layout()
	plans, _, err := n.planSettled(ctx, layout, ids)
	if err != nil || dryRun {
		return plans, err
	}
	for i := range plans {
		if plans[i].Refused != "" {
			continue
		}
		if err := c.recoverPartition(ctx, layout, &plans[i]); err != nil {
			plans[i].Refused = err.Error()
			continue
		}
		plans[i].Recovered = true
	}
	return plans, nil
}

// awaitMetadataLeader waits until this node knows a leader of the metadata, for as long as
// an election may take.
func (n *Node) awaitMetadataLeader(ctx context.Context) bool {
	for deadline := time.Now().Add(leaderExpiry); ; {
		if n.metadata.Group().Leader().ID != "" {
			return true
		}
		if !sleep(ctx, deadline, leaderPause) {
			return false
		}
	}
}

// sleep waits for the duration d and returns false if ctx or the deadline ends first.
func sleep(ctx context.Context, deadline time.Time, d time.Duration) bool {
	if !time.Now().Add(d).Before(deadline) {
		return false
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// planSettled asks all members for their replicas and plans the recovery. It returns also
// what they responded.
func (n *Node) planSettled(ctx context.Context, layout *metadata.Layout, ids []uint32) ([]admin.PartitionRecovery, map[uint32]*nodepb.StatusResponse, error) {
	ask := func() map[uint32]*nodepb.StatusResponse { return n.askWithin(ctx, recoverStatusTimeout, true) }
	plans, statuses := settle(ctx, layout, ids, time.Now().Add(leaderExpiry), ask)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err // the members that were not waited for are not silent
	}
	return plans, statuses, nil
}

// settle plans the recovery once no partition without a majority has a leader, or when the
// deadline has passed. A leader without a majority is only known until its lease and the
// heartbeat timeouts of its followers have passed, and may append to its log until then.
func settle(ctx context.Context, layout *metadata.Layout, ids []uint32, deadline time.Time, ask func() map[uint32]*nodepb.StatusResponse) ([]admin.PartitionRecovery, map[uint32]*nodepb.StatusResponse) {
	for {
		statuses := ask()
		plans := planRecovery(layout, statuses, ids)
		led := slices.ContainsFunc(plans, func(p admin.PartitionRecovery) bool { return p.Needed && leaderOfAny(statuses, p.Partition) != "" })
		if !led || !sleep(ctx, deadline, leaderPause) {
			return plans, statuses
		}
	}
}

// planRecovery says which partitions can be recovered, and from which replica. Without
// ids these are all that have lost their majority.
func planRecovery(layout *metadata.Layout, statuses map[uint32]*nodepb.StatusResponse, ids []uint32) []admin.PartitionRecovery {
	plans := []admin.PartitionRecovery{}
	for _, place := range layout.Partitions {
		asked := slices.Contains(ids, place.ID)
		if len(ids) > 0 && !asked {
			continue
		}
		plan := planPartition(layout, statuses, place)
		if plan.Needed || asked {
			plans = append(plans, plan)
		}
	}
	return plans
}

// planPartition looks at one partition. Only a partition whose replicas on all members
// are known is recovered: one that is not might have what the others lack, and come back
// with a vote.
func planPartition(layout *metadata.Layout, statuses map[uint32]*nodepb.StatusResponse, place metadata.Partition) admin.PartitionRecovery {
	plan := admin.PartitionRecovery{Partition: place.ID, Discarded: []uint32{}, Missing: []string{}}
	var best *nodepb.ReplicaStatus
	usable := map[string]bool{}
	for _, node := range layout.Nodes {
		for _, r := range statuses[node.ID].GetReplicas() {
			if r.Partition != place.ID || r.Quarantine != "" || r.Last == 0 {
				continue
			}
			usable[r.ReplicaId] = true
			if best == nil || cmp.Or(cmp.Compare(r.LastTerm, best.LastTerm), cmp.Compare(r.Last, best.Last)) > 0 {
				best, plan.From = r, node.ID
			}
		}
	}
	if best == nil {
		plan.Needed = allAnswer(layout, statuses) == ""
		plan.Refused = "no member has a usable replica of it; `platform-server repair release` ends the quarantine of one whose data is whole"
		return plan
	}
	plan.Replica, plan.Applied, plan.Last, plan.LastTerm = best.ReplicaId, best.Applied, best.Last, best.LastTerm
	for _, node := range layout.Nodes {
		for _, r := range statuses[node.ID].GetReplicas() {
			if r.Partition == place.ID && usable[r.ReplicaId] && node.ID != plan.From {
				plan.Discarded = append(plan.Discarded, node.ID)
			}
		}
	}
	for _, voter := range best.Voters {
		if !usable[voter] {
			plan.Missing = append(plan.Missing, voter)
		}
	}
	if majority := len(best.Voters)/2 + 1; len(best.Voters)-len(plan.Missing) >= majority {
		if leader, leads := leaderOf(statuses, place.ID); leads {
			plan.Refused = fmt.Sprintf("it is led by node %d, nothing has to be recovered", leader)
			return plan
		}
		plan.Refused = fmt.Sprintf("%d of its %d voters answer, which is a majority: it goes on by itself", len(best.Voters)-len(plan.Missing), len(best.Voters))
		return plan
	}
	plan.Needed = true
	if leader := leaderOfAny(statuses, place.ID); leader != "" {
		plan.Refused = fmt.Sprintf("%s leads it with voters on nodes that are not members or do not respond; it can be recovered once it has no leader", leader)
		return plan
	}
	plan.Refused = allAnswer(layout, statuses)
	return plan
}

// leaderOfAny is the Raft server id of the leader that any replica of a partition knows,
// member or not; "" if none knows one.
func leaderOfAny(statuses map[uint32]*nodepb.StatusResponse, partition uint32) string {
	var leader string
	term := uint64(0)
	for _, st := range statuses {
		for _, r := range st.Replicas {
			if r.Partition == partition && r.Leader != "" && r.Quarantine == "" && (r.Term > term || r.Term == term && r.Leader < leader || leader == "") {
				leader, term = r.Leader, r.Term
			}
		}
	}
	return leader
}

// allAnswer names the members that do not answer, "" if there are none.
func allAnswer(layout *metadata.Layout, statuses map[uint32]*nodepb.StatusResponse) string {
	var silent []string
	for _, node := range layout.Nodes {
		if statuses[node.ID] == nil {
			silent = append(silent, node.Name)
		}
	}
	if len(silent) == 0 {
		return ""
	}
	return fmt.Sprintf("of the members, %s does not answer and may have newer data: start it, or, if it is lost for good, remove it first (`platform cluster nodes remove %s --force`)",
		strings.Join(silent, ", "), silent[0])
}

// recoverPartition makes one replica the only one. The others are put into quarantine
// before, so that no two of them can still be a majority. The plan is made anew, since
// earlier recoveries took their time.
func (c clusterAdmin) recoverPartition(ctx context.Context, layout *metadata.Layout, plan *admin.PartitionRecovery) error {
	plans, statuses, err := c.n.planSettled(ctx, layout, []uint32{plan.Partition})
	if err != nil {
		return err
	}
	*plan = plans[0]
	if plan.Refused != "" {
		return errors.New(plan.Refused)
	}
	from, member := layout.Node(plan.From)
	if !member {
		return &metadata.NotFoundError{Node: plan.From}
	}
	for _, id := range append(slices.Clone(plan.Discarded), plan.From) {
		node, _ := layout.Node(id)
		if err := c.askRecover(ctx, node, from, plan.Partition, statuses[id]); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	c.n.log.Warn("partition recovered from one replica", "partition_id", plan.Partition, "node", from.Name, "raft_index", plan.Last, "missing", plan.Missing)
	return nil
}

func (c clusterAdmin) askRecover(ctx context.Context, node, from metadata.Node, id uint32, st *nodepb.StatusResponse) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	cluster, _ := c.n.metadata.Cluster()
	req := &nodepb.RecoverRequest{ClusterId: cluster.ID, Partition: id, From: string(from.ServerID())}
	for _, r := range st.GetReplicas() {
		if r.Partition == id {
			req.Replica, req.Last, req.LastTerm = r.ReplicaId, r.Last, r.LastTerm
		}
	}
	var resp *nodepb.RecoverResponse
	var err error
	if node.ServerID() == c.n.replica().ID {
		resp, err = c.n.cluster.Recover(ctx, req)
	} else {
		var peer nodepb.NodeClusterClient
		if peer, err = c.n.peers.at(string(c.n.addresses.of(node.ServerID()))); err == nil {
			resp, err = peer.Recover(ctx, req)
		}
	}
	if err == nil && resp.Error != "" {
		err = errors.New(resp.Error)
	}
	return err
}

// Recover does this node's part in the recovery of a partition.
func (s *clusterServer) Recover(ctx context.Context, req *nodepb.RecoverRequest) (*nodepb.RecoverResponse, error) {
	if _, err := s.member(req.ClusterId); err != nil {
		return &nodepb.RecoverResponse{Error: err.Error()}, nil //nolint:nilerr // the answer tells
	}
	if req.Partition >= s.partitions.Load() || s.router.Load() == nil {
		return &nodepb.RecoverResponse{Error: fmt.Sprintf("there is no partition %d", req.Partition)}, nil
	}
	if err := s.recoverReplica(ctx, req); err != nil {
		return &nodepb.RecoverResponse{Error: err.Error()}, nil //nolint:nilerr // the answer tells
	}
	return &nodepb.RecoverResponse{}, nil
}

// recoverReplica makes the replica of a partition the only one, or puts it into
// quarantine in favour of the one that is.
func (n *Node) recoverReplica(ctx context.Context, req *nodepb.RecoverRequest) error {
	id := req.Partition
	p := n.router.Replica(id)
	if p == nil {
		return fmt.Errorf("there is no usable replica of partition %d", id)
	}
	if err := awaitNoLeader(ctx, p); err != nil {
		return err
	}
	for !n.tending[id].TryLock() {
		select {
		case <-time.After(recoverPause):
		case <-ctx.Done():
			return fmt.Errorf("the replica is in use: %w", ctx.Err())
		}
	}
	defer n.tending[id].Unlock()
	if n.router.Replica(id) != p {
		return fmt.Errorf("the replica of partition %d was closed meanwhile", id)
	}
	if err := unchanged(p, req); err != nil {
		return err
	}
	if err := n.closeReplica(ctx, p, p.Stop); err != nil {
		return err
	}
	if req.From != string(n.replica().ID) {
		reason := "the partition was recovered from node " + req.From + " after it had lost its majority"
		if err := n.logs.Quarantine(partition.GroupID(id), reason); err != nil {
			return err
		}
		n.quarantine.add(id, reason)
		n.log.Warn("replica given up, the partition is recovered from another one", "partition_id", id, "from", req.From)
		return nil
	}
	if err := n.forceReplica(id); err != nil {
		return err
	}
	layout, _ := n.metadata.Layout()
	return n.openReplica(ctx, id, layout)
}

// leaderView is what a replica knows of its partition's leader.
type leaderView interface {
	ID() uint32
	Leader() raftgroup.Leader
	Changed() <-chan struct{}
}

// awaitNoLeader waits until a replica knows no leader, for at most leaderExpiry.
func awaitNoLeader(ctx context.Context, p leaderView) error {
	ctx, cancel := context.WithTimeout(ctx, leaderExpiry)
	defer cancel()
	for {
		changed := p.Changed()
		leader := p.Leader()
		if leader.ID == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return hasLeader(p.ID(), leader)
		}
	}
}

func hasLeader(partition uint32, leader raftgroup.Leader) error {
	return fmt.Errorf("partition %d has a leader, %s", partition, leader.ID)
}

// unchanged refuses a replica that is not as it was when the recovery was decided.
func unchanged(p *partition.Partition, req *nodepb.RecoverRequest) error {
	if own := string(p.LocalID()); own != req.Replica {
		return fmt.Errorf("the replica here is %s, not %s", own, req.Replica)
	}
	if leader := p.Leader(); leader.ID != "" {
		return hasLeader(p.ID(), leader)
	}
	last, err := p.LastPosition()
	if err != nil {
		return err
	}
	if last != (raftgroup.Position{Index: req.Last, Term: req.LastTerm}) {
		return fmt.Errorf("the log has changed since: it ends at entry %d of term %d", last.Index, last.Term)
	}
	return nil
}

// forceReplica makes the closed replica of a partition the only one, under the next
// number, so that former members that remember it get no answer.
func (n *Node) forceReplica(id uint32) error {
	record, err := n.hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	if err := record.Renumber(); err != nil {
		return err
	}
	return partition.ForceOnlyMember(n.logs, n.tables, n.hard, id, raft.Server{Suffrage: raft.Voter, ID: n.replica().ID, Address: n.transportAddress()})
}
