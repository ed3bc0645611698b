package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"platform/admin"
	"platform/internal/cluster"
	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/units"
	"platform/metadata"
	nodepb "platform/proto/node"
)

const (
	// recoverTimeout limits one node's part of the recovery of a partition.
	recoverTimeout = 45 * time.Second
	// recoverStatusTimeout limits the wait for a member's replicas. It is long, because a member
	// that does not respond prevents the recovery.
	recoverStatusTimeout = 5 * time.Second
	// leaderPause is the time between two lookups of the leader.
	leaderPause = 50 * time.Millisecond
)

// RecoverPartitions implements admin.Cluster.
func (c *Cluster) RecoverPartitions(ctx context.Context, partitions []uint32, dryRun, wait bool) ([]admin.PartitionRecovery, error) {
	expiry := time.Duration(0)
	if wait {
		expiry = cluster.LeaderExpiry
	}
	switch led := c.awaitMetadataLeader(ctx, expiry); {
	case !led && !wait:
		return nil, reject(http.StatusServiceUnavailable, "no node leads the metadata at the moment. If that remains so for more than %s, the metadata has lost its majority, too: "+
			"if most of its voters are lost for good, stop this server and run `platform-server recover` on the node with the newest metadata (metadata_applied is %d here)",
			units.Rough(cluster.LeaderExpiry), c.Store.AppliedIndex())
	case !led:
		return nil, reject(http.StatusServiceUnavailable, "the metadata has lost its majority, too: if most of its voters are lost for good, stop this server and run "+
			"`platform-server recover` on the node with the newest metadata (metadata_applied is %d here)", c.Store.AppliedIndex())
	}
	if c.Store.FeatureLevel() < feature.Level2 {
		return nil, reject(http.StatusConflict, "recovering a partition needs feature level 2, the cluster is at level %d", c.Store.FeatureLevel())
	}
	layout, _ := c.Store.Layout()
	plans, _, err := c.planSettled(ctx, layout, partitions, expiry)
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

// awaitMetadataLeader waits until this node knows the leader of the metadata, at most for a
// duration.
func (c *Cluster) awaitMetadataLeader(ctx context.Context, most time.Duration) bool {
	for deadline := time.Now().Add(most); ; {
		if c.Store.Group().Leader().ID != "" {
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

// planSettled requests the replicas of all members and plans the recovery. It also returns their
// responses. It waits at most for a duration until leaders without a majority have stepped down.
func (c *Cluster) planSettled(ctx context.Context, layout *metadata.Layout, partitions []uint32, most time.Duration) ([]admin.PartitionRecovery, cluster.Statuses, error) {
	query := func() cluster.Statuses { return c.Nodes.StatusesWithin(ctx, recoverStatusTimeout, true) }
	plans, statuses := settle(ctx, layout, partitions, time.Now().Add(most), query)
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err // members that were not waited for are not unresponsive
	}
	return plans, statuses, nil
}

// settle plans the recovery once no partition without a majority has a leader, or when the
// deadline has passed. A leader without a majority is only known until its lease and the
// heartbeat timeouts of its followers have passed, and may append to its log until then.
func settle(ctx context.Context, layout *metadata.Layout, partitions []uint32, deadline time.Time, query func() cluster.Statuses) ([]admin.PartitionRecovery, cluster.Statuses) {
	for {
		statuses := query()
		plans := planRecovery(layout, statuses, partitions)
		led := slices.ContainsFunc(plans, func(p admin.PartitionRecovery) bool { return p.Needed && statuses.KnownLeader(p.Partition) != "" })
		if !led || !sleep(ctx, deadline, leaderPause) {
			return plans, statuses
		}
	}
}

// planRecovery determines which partitions can be recovered, and from which replica. Without
// partitions these are all that have lost their majority.
func planRecovery(layout *metadata.Layout, statuses cluster.Statuses, partitions []uint32) []admin.PartitionRecovery {
	plans := []admin.PartitionRecovery{}
	for _, place := range layout.Partitions {
		asked := slices.Contains(partitions, place.ID)
		if len(partitions) > 0 && !asked {
			continue
		}
		plan := planPartition(layout, statuses, place)
		if plan.Needed || asked {
			plans = append(plans, plan)
		}
	}
	return plans
}

// planPartition plans the recovery of one partition. The replicas on all members must be known:
// an unknown one might contain what the others lack, and return with a vote.
func planPartition(layout *metadata.Layout, statuses cluster.Statuses, place metadata.Partition) admin.PartitionRecovery {
	plan := admin.PartitionRecovery{Partition: place.ID, Discarded: []ids.Node{}, Missing: []string{}}
	var best *nodepb.ReplicaStatus
	usable := map[string]bool{}
	for _, node := range layout.Nodes {
		for _, r := range statuses[node.ID].GetReplicas() {
			if r.Partition != place.ID || r.Quarantine != "" || r.Last == 0 {
				continue
			}
			usable[r.ReplicaId] = true
			if best == nil || cmp.Or(cmp.Compare(r.LastTerm, best.LastTerm), cmp.Compare(r.Last, best.Last)) > 0 {
				best, plan.From = r, ids.Node(node.ID)
			}
		}
	}
	if best == nil {
		plan.Needed = silentMembers(layout, statuses) == ""
		plan.Refused = "no member has a usable replica of it: `platform cluster status` shows the reasons; `platform-server repair release` ends the quarantine of one whose data is intact"
		return plan
	}
	plan.Replica, plan.Applied, plan.Last, plan.LastTerm = best.ReplicaId, best.Applied, best.Last, best.LastTerm
	for _, node := range layout.Nodes {
		for _, r := range statuses[node.ID].GetReplicas() {
			if r.Partition == place.ID && usable[r.ReplicaId] && ids.Node(node.ID) != plan.From {
				plan.Discarded = append(plan.Discarded, ids.Node(node.ID))
			}
		}
	}
	for _, voter := range best.Voters {
		if !usable[voter] {
			plan.Missing = append(plan.Missing, voter)
		}
	}
	if majority := len(best.Voters)/2 + 1; len(best.Voters)-len(plan.Missing) >= majority {
		if leader, leads := statuses.Leader(place.ID); leads {
			plan.Refused = fmt.Sprintf("it is led by node %s, it needs no recovery", ids.Node(leader))
			return plan
		}
		plan.Refused = fmt.Sprintf("%d of its %d voters respond, which is a majority: it needs no recovery", len(best.Voters)-len(plan.Missing), len(best.Voters))
		return plan
	}
	plan.Needed = true
	if leader := statuses.KnownLeader(place.ID); leader != "" {
		plan.Refused = fmt.Sprintf("%s leads it with voters on nodes that are not members or do not respond; it can be recovered once it has no leader", leader)
		return plan
	}
	plan.Refused = silentMembers(layout, statuses)
	return plan
}

// silentMembers returns why members that did not respond prevent a recovery, "" if all have responded.
func silentMembers(layout *metadata.Layout, statuses cluster.Statuses) string {
	var silent []string
	for _, node := range layout.Nodes {
		if statuses[node.ID] == nil {
			silent = append(silent, node.Name)
		}
	}
	if len(silent) == 0 {
		return ""
	}
	if len(silent) == 1 {
		return fmt.Sprintf("member %s does not respond and may have newer data: start it, or, if it is lost for good, remove it first (`platform cluster nodes remove %s --force`)",
			silent[0], silent[0])
	}
	return fmt.Sprintf("members %s do not respond and may have newer data: start them, or, if they are lost for good, remove them first (`platform cluster nodes remove %s --force`, and so on)",
		strings.Join(silent, ", "), silent[0])
}

// recoverPartition makes one replica the only one. The others are quarantined first, so that no
// two of them can still form a majority. It plans again, since earlier recoveries took time.
func (c *Cluster) recoverPartition(ctx context.Context, layout *metadata.Layout, plan *admin.PartitionRecovery) error {
	plans, statuses, err := c.planSettled(ctx, layout, []uint32{plan.Partition}, cluster.LeaderExpiry)
	if err != nil {
		return err
	}
	*plan = plans[0]
	if plan.Refused != "" {
		return errors.New(plan.Refused)
	}
	from, member := layout.Node(uint32(plan.From))
	if !member {
		return &metadata.NotFoundError{Node: uint32(plan.From)}
	}
	for _, id := range append(slices.Clone(plan.Discarded), plan.From) {
		node, _ := layout.Node(uint32(id))
		if err := c.sendRecover(ctx, node, from, plan.Partition, statuses[uint32(id)]); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	c.Log.Warn("partition recovered from one replica", "partition_id", plan.Partition, "node", from.Name, "raft_index", plan.Last, "missing", plan.Missing)
	return nil
}

func (c *Cluster) sendRecover(ctx context.Context, node, from metadata.Node, id uint32, st *nodepb.StatusResponse) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTimeout)
	defer cancel()
	req := &nodepb.RecoverRequest{Partition: id, From: string(from.ServerID())}
	for _, r := range st.GetReplicas() {
		if r.Partition == id {
			req.Replica, req.Last, req.LastTerm = r.ReplicaId, r.Last, r.LastTerm
		}
	}
	return c.Nodes.Recover(ctx, node, req)
}
