package replicas

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"platform/internal/cluster"
	"platform/internal/cluster/fabric"
	"platform/internal/diskspace"
	"platform/internal/errcode"
	"platform/metadata"
)

// statusAge is how long the statuses of the nodes are used.
const statusAge = time.Second

// statusCache holds recent statuses of all nodes, so that many callers that wait for a
// partition cause few requests.
type statusCache struct {
	mu    sync.Mutex // covers the fields below, held during the requests
	at    time.Time
	nodes cluster.Statuses
}

func (c *statusCache) get(request func() cluster.Statuses) cluster.Statuses {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > statusAge {
		c.nodes, c.at = request(), time.Now()
	}
	return c.nodes
}

// Unserved implements fabric.DirectoryConfig.Unserved: it reports a partition without a
// majority of replicas outside quarantine, or on nodes with disk space. Unless last is set,
// only a node whose own replica is in quarantine, or whose disk is full, requests the statuses
// of the others.
func (rc *Reconciler) Unserved(id uint32, last bool) error {
	if !last && rc.quarantine.reason(id) == "" && rc.cfg.Disk.Level() < diskspace.Full {
		return nil
	}
	layout, _ := rc.cfg.Store.Layout()
	if int(id) >= len(layout.Partitions) {
		return nil
	}
	// The statuses are shared by all callers, so no caller's context may cancel the requests.
	statuses := rc.statuses.get(func() cluster.Statuses { return rc.cfg.Nodes.Statuses(context.Background(), false) })
	if _, led := statuses.Leader(id); led {
		return nil
	}
	placed := layout.Partitions[id].Replicas
	var reasons []string
	for _, on := range placed {
		for _, r := range statuses[on].GetReplicas() {
			if node, known := layout.Node(on); known && r.Partition == id && r.Quarantine != "" {
				reasons = append(reasons, fmt.Sprintf("on node %s: %s", node.Name, r.Quarantine))
			}
		}
	}
	if len(reasons) == 0 || len(placed)-len(reasons) > len(placed)/2 {
		return closedForSpace(id, placed, layout, statuses)
	}
	return &fabric.UnservedError{Err: errcode.New(errcode.RT0009,
		"partition %d is quarantined on %d of its %d replicas and stays so until an operator acts (GET /cluster-health of the admin API, docs/cluster.md \"When a replica is put into quarantine\"): %s",
		id, len(reasons), len(placed), strings.Join(reasons, "; "))}
}

// closedForSpace reports a partition without a majority of replicas whose nodes have disk space.
func closedForSpace(id uint32, placed []uint32, layout *metadata.Layout, statuses cluster.Statuses) error {
	var full []string
	for _, on := range placed {
		if node, known := layout.Node(on); known && diskspace.MeansFull(statuses[on].GetDisk()) {
			full = append(full, node.Name)
		}
	}
	if len(full) == 0 || len(placed)-len(full) > len(placed)/2 {
		return nil
	}
	return &fabric.UnservedError{Err: fmt.Errorf("%d of the %d replicas of partition %d are closed until space is freed on the disk of %s",
		len(full), len(placed), id, strings.Join(full, ", "))}
}
