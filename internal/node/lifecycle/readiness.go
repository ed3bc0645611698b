package lifecycle

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/cluster/routing"
	"platform/internal/diskspace"
	"platform/internal/metrics"
	"platform/metadata"
)

const (
	// quorumGrace is how long the metadata may have no leader before the node reports that it is
	// not ready. It is longer than an election takes.
	quorumGrace = 5 * time.Second
	// settleGrace is how long a starting node waits until it knows the leaders of its partitions
	// before it reports that it is ready.
	settleGrace = 15 * time.Second
)

// Readiness decides whether this node should receive requests.
type Readiness struct {
	Started  time.Time
	Draining func() bool // reports whether the node is about to stop
	Disk     *diskspace.Monitor
	Metadata *metadata.Store
	Router   *routing.Router

	settled atomic.Bool // the leaders of its partitions were known
}

// Check returns why this node should receive no requests, nil if it should.
func (r *Readiness) Check() error {
	if r.Draining() {
		return errors.New("the node is stopping")
	}
	if shortage := r.Disk.Shortage(); r.Disk.Level() >= diskspace.Short && shortage != "" {
		return errors.New("the disk " + shortage)
	}
	if group := r.Metadata.Group(); group.Leader().ID == "" {
		heard := group.Stats().LastContact
		if heard.IsZero() || time.Since(heard) > quorumGrace {
			return errors.New("the metadata has no leader; a majority of the nodes that vote on it must be up and connected")
		}
	}
	return r.checkSettled()
}

// checkSettled reports whether the node has learned the leader of each of its partitions since it
// started. Before, the next node should not be stopped: this one may be needed for a majority that
// it is not part of yet.
func (r *Readiness) checkSettled() error {
	if r.settled.Load() {
		return nil
	}
	if time.Since(r.Started) < settleGrace {
		for p := range r.Router.Replicas() {
			if p.Leader().ID == "" {
				return fmt.Errorf("the node is starting: partition %d has no leader yet", p.ID())
			}
		}
	}
	r.settled.Store(true)
	return nil
}

var descReady = metrics.Desc("node_ready", "1 if the node is ready for requests, as reported by /health.")

// Collector returns the metric of readiness.
func (r *Readiness) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) { out.Bool(descReady, r.Check() == nil) }, descReady)
}
