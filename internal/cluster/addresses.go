package cluster

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"platform/internal/cluster/membership"
	"platform/internal/raftgroup"
	"platform/metadata"
)

// Addresses maps nodes to their addresses: those that gossip announces, otherwise those in
// the metadata. It is read for each request to another node and so is rebuilt only when
// something changes. It is safe for concurrent use.
type Addresses struct {
	pages atomic.Pointer[addressPages]
}

type addressPages struct {
	byServer map[raft.ServerID]string
	// replicas are the addresses of the nodes that have a replica, by partition, the
	// preferred leader first.
	replicas [][]string
}

// NewAddresses returns an empty Addresses.
func NewAddresses() *Addresses {
	b := &Addresses{}
	b.pages.Store(&addressPages{})
	return b
}

// Update replaces the addresses. layout is nil as long as there is none.
func (b *Addresses) Update(layout *metadata.Layout, members []membership.Member) {
	pages := &addressPages{byServer: map[raft.ServerID]string{}}
	byID := map[uint32]string{}
	if layout != nil {
		for _, n := range layout.Nodes {
			pages.byServer[n.ServerID()] = string(n.RaftAddress())
		}
	}
	for _, m := range members {
		if m.State == membership.Alive {
			pages.byServer[ServerID(m.Name, m.Incarnation)] = m.Address
		}
	}
	if layout != nil {
		for _, n := range layout.Nodes {
			byID[n.ID] = pages.byServer[n.ServerID()]
		}
		pages.replicas = make([][]string, len(layout.Partitions))
		for i, p := range layout.Partitions {
			for _, id := range p.Replicas {
				if address := byID[id]; address != "" {
					pages.replicas[i] = append(pages.replicas[i], address)
				}
			}
		}
	}
	b.pages.Store(pages)
}

// Of returns the address of a server of a Raft group, "" if it is not known.
func (b *Addresses) Of(id raft.ServerID) raft.ServerAddress {
	node, _ := metadata.ReplicaNode(id)
	return raft.ServerAddress(b.pages.Load().byServer[node])
}

// OfLeader returns the address of a leader.
func (b *Addresses) OfLeader(l raftgroup.Leader) string {
	if address := b.Of(l.ID); address != "" {
		return string(address)
	}
	return string(l.Address)
}

// Holders returns the addresses of the nodes that have a replica of a partition, the
// preferred leader first.
func (b *Addresses) Holders(partition uint32) []string {
	if all := b.pages.Load().replicas; int(partition) < len(all) {
		return all[partition]
	}
	return nil
}

// Run keeps the addresses up to date until ctx ends.
func (b *Addresses) Run(ctx context.Context, store *metadata.Store, members *membership.Members) {
	changes, stop := members.Watch()
	defer stop()
	for {
		layout, moved := store.Layout()
		b.Update(layout, members.Nodes())
		select {
		case <-moved:
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}

// ServerID returns the Raft server ID of a node's replicas that were never rebuilt.
func ServerID(name, incarnation string) raft.ServerID {
	return metadata.Node{Name: name, Incarnation: incarnation}.ServerID()
}
