package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"platform/ingress"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/metadata"
	"platform/partition"
)

const (
	// handOverTimeout bounds how long a node that stops looks for others to lead; a
	// sixth of shutdown-timeout does, too.
	handOverTimeout = 10 * time.Second
	// handOverPause is the time between two tries.
	handOverPause = 50 * time.Millisecond
	// lameDuck is for how long a node that stops still takes requests: load balancers
	// look elsewhere meanwhile, and clients are told with each answer to use another
	// connection. One that is closed while a request is on its way would fail it.
	lameDuck = time.Second
	// lonelyDrain is how long requests in progress may take when no other node can
	// go on with them.
	lonelyDrain = 5 * time.Second
)

// drain makes the node superfluous: load balancers look elsewhere, and other nodes
// lead. Requests are answered all the while.
func (n *Node) drain(in *ingress.Server) {
	n.log.Info("server stopping")
	n.ending.enter("leaders elsewhere and requests in progress")
	n.draining.Store(true)
	in.Drain()
	if len(n.metadata.Nodes()) < 2 {
		return
	}
	n.wantNothing(true)
	share := n.cfg.ShutdownTimeout.Std() / 6 // requests in progress have three quarters
	ducked := time.After(min(lameDuck, share))
	ctx, cancel := context.WithTimeout(context.Background(), min(handOverTimeout, share))
	defer cancel()
	var wg sync.WaitGroup
	for p := range n.router.Replicas() {
		wg.Go(func() { n.handOver(ctx, p) })
	}
	wg.Wait()
	if len(n.staying()) > 0 {
		<-ducked
	}
}

// wantNothing tells the others whether this node is to get leaderships and replicas.
func (n *Node) wantNothing(nothing bool) {
	if n.members == nil {
		return // too early for anybody to give it any
	}
	if err := n.members.UpdateMeta(func(m *membership.Meta) { m.Draining = nothing }); err != nil {
		n.log.Warn("others do not know whether this node takes anything", "err", err)
	}
}

// shortOfRoom is told when the disk fills up, and when it has room again.
func (n *Node) shortOfRoom(short bool) { n.wantNothing(short || n.draining.Load()) }

// room says why a partition that this node leads takes nothing new, nil if it does.
// As long as another node may take over, whoever asks is to look for that one.
func (n *Node) room() error {
	err := n.disk.Room()
	if err != nil && len(n.metadata.Nodes()) > 1 && n.disk.ShortFor() < handOverTimeout {
		return fmt.Errorf("%w: %s", raftgroup.ErrNotLeader, err.Error()) // not ErrOverloaded, which is final
	}
	return err
}

// handOver gives up the leadership of a partition.
func (n *Node) handOver(ctx context.Context, p *partition.Partition) {
	for p.Leading() {
		heir, hope := n.heir(p)
		if !hope {
			return
		}
		err := errNotCaughtUp
		if heir != "" {
			err = p.TransferLeadership(ctx, heir)
		}
		switch {
		case err == nil, errors.Is(err, raftgroup.ErrNotLeader), errors.Is(err, raftgroup.ErrNoPeer):
			return
		case ctx.Err() != nil:
			n.log.Warn("leadership not handed over, the others elect", "partition_id", p.ID(), "err", err)
			return
		}
		select {
		case <-time.After(handOverPause):
		case <-ctx.Done():
		}
	}
}

var errNotCaughtUp = errors.New("no other replica has caught up")

// heir is a replica that can lead in place of this one, "" if there is none now; hope
// tells whether there may soon be. Those on nodes that are about to stop, too, would
// only pass the leadership on.
func (n *Node) heir(p *partition.Partition) (heir raft.ServerID, hope bool) {
	staying := n.staying()
	for _, f := range p.Status().Followers {
		node, _ := metadata.ReplicaNode(f.ID)
		if !isVoter(f.Server) || !staying[node] {
			continue
		}
		if hope = true; f.Live && f.CaughtUp {
			return f.ID, true
		}
	}
	return "", hope
}

// staying are the other nodes that are there and are to take things.
func (n *Node) staying() map[raft.ServerID]bool {
	staying := map[raft.ServerID]bool{}
	for _, m := range n.members.Nodes() {
		if !m.Self && m.State == membership.Alive && !m.Draining {
			staying[serverID(m.Name, m.Incarnation)] = true
		}
	}
	return staying
}

// closeMetadata ends the replica of the metadata, as closePartitions does those of
// partitions.
func (n *Node) closeMetadata() error {
	n.ending.enter("the replica of the metadata")
	if len(n.staying()) == 0 {
		return n.metadata.Stop()
	}
	return n.metadata.Close()
}

// drainTimeout is how long requests in progress may take once the node stops.
func (n *Node) drainTimeout() time.Duration {
	if len(n.metadata.Nodes()) < 2 {
		return min(lonelyDrain, n.cfg.ShutdownTimeout.Std()*3/4)
	}
	return n.cfg.ShutdownTimeout.Std() * 3 / 4 // the rest is for closing partitions and files
}
