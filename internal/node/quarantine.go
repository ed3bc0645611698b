package node

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"platform/internal/raftgroup"
	"platform/partition"
)

// quarantine knows which replicas of this node are not served because their data
// cannot be used, and why. The durable mark is the Raft group's.
type quarantine struct {
	mu       sync.Mutex
	replicas map[uint32]quarantinedReplica
}

type quarantinedReplica struct {
	reason string
	since  time.Time
}

// add records a replica, once.
func (q *quarantine) add(id uint32, reason string) (added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.replicas[id]; known {
		return false
	}
	if q.replicas == nil {
		q.replicas = map[uint32]quarantinedReplica{}
	}
	q.replicas[id] = quarantinedReplica{reason, time.Now()}
	return true
}

// remove ends the quarantine of a replica, whose data has been replaced.
func (q *quarantine) remove(id uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.replicas, id)
}

// reason is why a replica is in quarantine, "" if it is not.
func (q *quarantine) reason(id uint32) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.replicas[id].reason
}

func (q *quarantine) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.replicas)
}

// quarantined reports whether err, of opening a replica or from a running one, means
// that it is in quarantine from now on. All other partitions are served.
func (n *Node) quarantined(id uint32, err error) bool {
	if !errors.Is(err, raftgroup.ErrQuarantined) && !errors.Is(err, raftgroup.ErrStateBehindSnapshot) {
		return false
	}
	if n.quarantine.add(id, quarantineReason(err)) {
		n.log.Error("partition replica quarantined, it is not served from this node", "partition_id", id, "err", err)
	}
	return true
}

// quarantineReason is the text of err without what goes without saying.
func quarantineReason(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, raftgroup.ErrQuarantined.Error()+": "); at >= 0 {
		text = text[at+len(raftgroup.ErrQuarantined.Error())+2:]
	}
	return text
}

// replicaFailed is told when an open replica cannot go on.
func (n *Node) replicaFailed(id uint32, err error) {
	if !n.quarantined(id, err) {
		n.fail(err)
	}
}

// isolate takes a quarantined replica out of use.
func (n *Node) isolate(ctx context.Context, p *partition.Partition) error {
	if p == nil {
		return nil
	}
	return n.closeReplica(ctx, p, p.Stop)
}
