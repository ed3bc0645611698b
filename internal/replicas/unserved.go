package replicas

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"platform/internal/cluster"
	"platform/internal/errcode"
	"platform/internal/fabric"
)

// answersAge is how long it counts what the nodes have said about their replicas.
const answersAge = time.Second

// answers is what the nodes have said lately, so that many callers that wait for a
// partition make few requests.
type answers struct {
	mu    sync.Mutex // covers the fields below, held while the nodes are asked
	at    time.Time
	nodes cluster.Statuses
}

func (a *answers) get(ask func() cluster.Statuses) cluster.Statuses {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.at) > answersAge {
		a.nodes, a.at = ask(), time.Now()
	}
	return a.nodes
}

// Unserved implements fabric.DirectoryConfig.Unserved: it looks for partitions whose
// replicas are in quarantine, so that those that are left are no majority. Unless this is
// the last time, only a node whose own replica is in quarantine asks the others.
func (m *Manager) Unserved(_ context.Context, id uint32, last bool) error {
	if !last && m.quarantine.reason(id) == "" {
		return nil
	}
	layout, _ := m.Store.Layout()
	if int(id) >= len(layout.Partitions) {
		return nil
	}
	// The answers are for all who wait, so that none of them can cancel the requests.
	statuses := m.answers.get(func() cluster.Statuses { return m.Nodes.Statuses(context.Background(), false) })
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
		return nil
	}
	return &fabric.UnservedError{Err: errcode.New(errcode.RT0009,
		"partition %d is quarantined on %d of its %d replicas and stays so until an operator acts (GET /cluster-health of the admin API, docs/cluster.md \"When a replica is put into quarantine\"): %s",
		id, len(reasons), len(placed), strings.Join(reasons, "; "))}
}
