package node

import (
	"context"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"platform/internal/config"
	"platform/internal/datadir"
	"platform/internal/membership"
	"platform/internal/raftgroup"
	"platform/metadata"
)

// fabricAddress is the host:port under which other nodes reach this one.
func (n *Node) fabricAddress() string {
	return config.HostPort(n.cfg.AdvertisedURL(n.port.Addr()))
}

// seeds are the addresses of other nodes that the configuration names.
func (n *Node) seeds() []string {
	var seeds []string
	for _, address := range n.cfg.MetadataClient.Addresses {
		if address = config.HostPort(address); address != n.fabricAddress() {
			seeds = append(seeds, address)
		}
	}
	return seeds
}

// addressBook knows where the nodes are reached: as they say themselves, or else as
// the metadata have it. It is read for each request to another node and so is rebuilt
// only when something has changed.
type addressBook struct {
	pages atomic.Pointer[addressPages]
}

type addressPages struct {
	byServer map[raft.ServerID]string
	// replicas are the addresses of the nodes that have a replica, by partition, the
	// preferred leader first.
	replicas [][]string
}

func newAddressBook() *addressBook {
	b := &addressBook{}
	b.pages.Store(&addressPages{})
	return b
}

// update takes over who is where. layout is nil as long as there is none.
func (b *addressBook) update(layout *metadata.Layout, members []membership.Member) {
	pages := &addressPages{byServer: map[raft.ServerID]string{}}
	byID := map[uint32]string{}
	if layout != nil {
		for _, n := range layout.Nodes {
			pages.byServer[n.ServerID()] = string(n.RaftAddress())
		}
	}
	for _, m := range members {
		if m.State == membership.Alive {
			pages.byServer[serverID(m.Name, m.Incarnation)] = m.Address
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

// of is the address of a server of a Raft group, "" if it is not known.
func (b *addressBook) of(id raft.ServerID) raft.ServerAddress {
	node, _ := metadata.ReplicaNode(id)
	return raft.ServerAddress(b.pages.Load().byServer[node])
}

// ofLeader is where a leader is reached.
func (b *addressBook) ofLeader(l raftgroup.Leader) string {
	if address := b.of(l.ID); address != "" {
		return string(address)
	}
	return string(l.Address)
}

// holders are the addresses of the nodes that have a replica of a partition.
func (b *addressBook) holders(partition uint32) []string {
	if all := b.pages.Load().replicas; int(partition) < len(all) {
		return all[partition]
	}
	return nil
}

// keepAddresses keeps the address book up to date until ctx ends.
func (n *Node) keepAddresses(ctx context.Context) error {
	changes, stop := n.members.Watch()
	defer stop()
	for {
		layout, moved := n.metadata.Layout()
		n.addresses.update(layout, n.members.Nodes())
		select {
		case <-moved:
		case <-changes:
		case <-ctx.Done():
			return nil
		}
	}
}

func serverID(name, incarnation string) raft.ServerID {
	return raft.ServerID(datadir.Identity{Node: name, Incarnation: incarnation}.ReplicaID())
}
