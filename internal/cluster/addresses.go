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
	table atomic.Pointer[addressTable]
}

type addressTable struct {
	byServer map[raft.ServerID]string
	// replicas are the addresses of the nodes that have a replica, by partition, the
	// preferred leader first.
	replicas [][]string
}

// NewAddresses returns an empty Addresses.
func NewAddresses() *Addresses {
	a := &Addresses{}
	a.table.Store(&addressTable{})
	return a
}

// update replaces the addresses. layout is nil as long as there is none.
func (a *Addresses) update(layout *metadata.Layout, members []membership.Member) {
	table := &addressTable{byServer: map[raft.ServerID]string{}}
	if layout != nil {
		for _, n := range layout.Nodes {
			table.byServer[n.ServerID()] = string(n.RaftAddress())
		}
	}
	for _, m := range members {
		if m.State == membership.Alive {
			table.byServer[ServerID(m.Name, m.Incarnation)] = m.Address
		}
	}
	if layout != nil {
		table.replicas = table.replicaAddresses(layout)
	}
	a.table.Store(table)
}

// replicaAddresses returns the known addresses of the replicas of each partition.
func (t *addressTable) replicaAddresses(layout *metadata.Layout) [][]string {
	byID := map[uint32]string{}
	for _, n := range layout.Nodes {
		byID[n.ID] = t.byServer[n.ServerID()]
	}
	replicas := make([][]string, len(layout.Partitions))
	for i, p := range layout.Partitions {
		for _, id := range p.Replicas {
			if address := byID[id]; address != "" {
				replicas[i] = append(replicas[i], address)
			}
		}
	}
	return replicas
}

// Of returns the address of a server of a Raft group, "" if it is not known.
func (a *Addresses) Of(id raft.ServerID) raft.ServerAddress {
	node, _ := metadata.ReplicaNode(id)
	return raft.ServerAddress(a.table.Load().byServer[node])
}

// OfLeader returns the address of a leader.
func (a *Addresses) OfLeader(l raftgroup.Leader) string {
	if address := a.Of(l.ID); address != "" {
		return string(address)
	}
	return string(l.Address)
}

// Holders returns the addresses of the nodes that have a replica of a partition, the
// preferred leader first.
func (a *Addresses) Holders(partition uint32) []string {
	if all := a.table.Load().replicas; int(partition) < len(all) {
		return all[partition]
	}
	return nil
}

// Run keeps the addresses up to date until ctx ends.
func (a *Addresses) Run(ctx context.Context, store *metadata.Store, members *membership.Members) {
	changes, stop := members.Watch()
	defer stop()
	for {
		layout, moved := store.Layout()
		a.update(layout, members.Nodes())
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
