package node

import (
	"context"
	"sync"
	"time"

	"platform/ingress"
	"platform/internal/cluster/replicas"
)

const (
	// handOffPeriod is how long a stopping node still accepts requests. Meanwhile load balancers switch
	// to other nodes, and each response tells its client to use another connection: a request that
	// is in flight when its connection is closed would fail.
	handOffPeriod = time.Second
	// singleNodeDrainTimeout is how long requests in progress may take when no other node can continue them.
	singleNodeDrainTimeout = 5 * time.Second
)

// drain moves work away from the node: load balancers switch to other nodes, and other nodes take
// over leaderships. Requests are served meanwhile.
func (n *Node) drain(in *ingress.Server) {
	n.log.Info("server stopping")
	n.shutdown.Enter("leaders elsewhere and requests in progress")
	n.draining.Store(true)
	in.Drain()
	if len(n.metadata.Nodes()) < 2 {
		return
	}
	n.port.drained(true, n.log)
	share := n.cfg.ShutdownTimeout.Std() / 6 // three quarters are for requests in progress
	handedOff := time.After(min(handOffPeriod, share))
	ctx, cancel := context.WithTimeout(context.Background(), min(replicas.HandOverTimeout, share))
	defer cancel()
	var wg sync.WaitGroup
	for p := range n.router.Replicas() {
		wg.Go(func() { n.replicas.HandOver(ctx, p) })
	}
	wg.Wait()
	if len(n.replicas.AvailableNodes()) > 0 {
		<-handedOff
	}
}

// shortOfSpace is called when the disk becomes short of space, and when it no longer is.
func (n *Node) shortOfSpace(short bool) { n.port.drained(short || n.draining.Load(), n.log) }

// closeMetadata stops the replica of the metadata.
func (n *Node) closeMetadata() error {
	n.shutdown.Enter("the replica of the metadata")
	if len(n.replicas.AvailableNodes()) == 0 {
		return n.metadata.Stop()
	}
	return n.metadata.Close()
}

// drainTimeout returns how long requests in progress may take when the node stops.
func (n *Node) drainTimeout() time.Duration {
	if len(n.metadata.Nodes()) < 2 {
		return min(singleNodeDrainTimeout, n.cfg.ShutdownTimeout.Std()*3/4)
	}
	return n.cfg.ShutdownTimeout.Std() * 3 / 4 // the rest is for closing partitions and files
}
