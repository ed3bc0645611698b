package replicas

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"platform/internal/raftgroup"
	"platform/partition"
)

// quarantine records which replicas of this node are not served because their data is
// unusable, and why. The Raft group stores the mark durably.
type quarantine struct {
	mu       sync.Mutex // covers the fields below
	replicas map[uint32]string
	intended map[uint32]string // open replicas that are about to be put into quarantine, see quarantineDispensable
	rebuilds map[uint32]rebuilds
	closed   map[uint32]time.Time // since when a replica in quarantine has been closed
}

// rebuilds is the time of a replica's last rebuild, and the delay of the next one.
type rebuilds struct {
	last  time.Time
	pause time.Duration
}

// add adds a replica; an earlier reason is kept.
func (q *quarantine) add(id uint32, reason string) (added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.replicas[id]; known {
		return false
	}
	if q.replicas == nil {
		q.replicas, q.rebuilds, q.closed = map[uint32]string{}, map[uint32]rebuilds{}, map[uint32]time.Time{}
	}
	q.replicas[id] = reason
	return true
}

// announce makes other nodes not rely on an open replica.
func (q *quarantine) announce(id uint32, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.intended == nil {
		q.intended = map[uint32]string{}
	}
	q.intended[id] = reason
}

// withdraw is the reverse of announce.
func (q *quarantine) withdraw(id uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.intended, id)
}

// reported returns why other nodes must not rely on a replica, "" if they can.
func (q *quarantine) reported(id uint32) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if reason := q.replicas[id]; reason != "" {
		return reason
	}
	return q.intended[id]
}

// due reports whether a closed replica may be rebuilt now: once the leader has noticed that it
// is closed, and after a rebuild with increasing delays.
func (q *quarantine) due(id uint32, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	closed, known := q.closed[id]
	if !known {
		closed, q.closed[id] = now, now
	}
	r := q.rebuilds[id]
	return now.Sub(closed) >= quarantineGrace && now.Sub(r.last) >= r.pause
}

// postpone delays the next attempt to rebuild a replica.
func (q *quarantine) postpone(id uint32, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed[id] = now
}

// rebuilt ends the quarantine of a replica whose data was removed.
func (q *quarantine) rebuilt(id uint32, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.replicas, id)
	delete(q.intended, id)
	delete(q.closed, id)
	q.rebuilds[id] = rebuilds{last: now, pause: min(max(2*q.rebuilds[id].pause, rebuildPause), rebuildPauseMax)}
}

// reason returns why a replica is in quarantine, "" if it is not.
func (q *quarantine) reason(id uint32) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.replicas[id]
}

func (q *quarantine) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.replicas)
}

// quarantined reports whether err, returned by opening or running a replica, puts the
// replica into quarantine. Other partitions are not affected.
func (rc *Reconciler) quarantined(id uint32, err error) bool {
	if !errors.Is(err, raftgroup.ErrQuarantined) && !errors.Is(err, raftgroup.ErrStateBehindSnapshot) {
		return false
	}
	reason := quarantineReason(err)
	layout, _ := rc.cfg.Store.Layout()
	switch {
	case len(layout.Nodes) < 2:
		reason += fmt.Sprintf(aloneRemedy, partition.GroupID(id), rc.cfg.DataDir)
	case rc.holds(layout.Partitions[id]) && len(layout.Partitions[id].Replicas) < 2:
		reason += fmt.Sprintf(onlyReplicaRemedy, partition.GroupID(id), rc.cfg.DataDir)
	}
	if rc.quarantine.add(id, reason) {
		rc.cfg.Log.Error("partition replica quarantined", "partition_id", id, "err", err)
	}
	return true
}

// aloneRemedy is the hint if there is no other node to rebuild a replica from.
const aloneRemedy = "; there is no other node to copy the partition from: stop the server and restore the whole data directory from a backup, " +
	"restore the newest copy of the lost data, or continue without it: \"platform-server repair accept-loss --group %d --data-dir %s\" reports the loss and prompts"

// onlyReplicaRemedy is the hint if other nodes have no replica of the partition. An older copy of the data directory would
// make the other replicas of this node forget what they have promised.
const onlyReplicaRemedy = "; no other node has a replica of the partition: stop the server and continue without the lost data: " +
	"\"platform-server repair accept-loss --group %d --data-dir %s\" reports the loss and prompts"

// quarantineReason is the text of err without redundant prefixes.
func quarantineReason(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, raftgroup.ErrQuarantined.Error()+": "); at >= 0 {
		text = text[at+len(raftgroup.ErrQuarantined.Error())+2:]
	}
	return text
}

// failed is called when an open replica fails.
func (rc *Reconciler) failed(id uint32, err error) {
	if !rc.quarantined(id, err) {
		rc.cfg.OnFailed(err)
	}
}
