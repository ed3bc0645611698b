package fabric

import (
	"sync/atomic"
	"time"

	"platform/internal/raftgroup"
	"platform/partition/machine"
)

// DirectoryConfig configures how a Directory finds the replicas of partitions.
type DirectoryConfig struct {
	// Local returns this node's replica of a partition, nil if it has none. It is called
	// for each request and must be fast.
	Local func(partition uint32) Local
	// Remote returns the replica on another node, such as Client.Remote does; nil means
	// that there are no other nodes.
	Remote func(address string, partition uint32) Replica
	// Replicas returns the addresses of the nodes that hold a partition according to the
	// partition table, the most likely leader first; nil means that there are no other
	// nodes.
	Replicas func(partition uint32) []string
	// Unresponsive reports whether the node at an address is unresponsive. Such nodes are
	// tried last. nil means that all nodes are responsive.
	Unresponsive func(address string) bool
	// AddressOf returns the current address of a leader; nil uses the address in the Raft
	// configuration.
	AddressOf func(raftgroup.Leader) string
	// Unserved returns an *UnservedError if no replica of a partition can lead before an
	// operator acts. It is called after each round in which no leader was found, and must
	// be fast unless last is set, which means that the request is about to fail; nil means
	// that there may always be a leader.
	Unserved func(partition uint32, last bool) error
	// Self is the address of this node, to which no requests are sent over the network.
	Self string
	// LookupTimeout bounds the lookup of a leader for a request whose context carries no
	// deadline of its own (WithLookupDeadline); 0 means FailoverBudget.
	LookupTimeout time.Duration
}

const (
	// FailoverBudget is how long a request waits for a leader in each failover. It is longer
	// than the detection of an unresponsive node.
	FailoverBudget = 10 * time.Second
	// deliverLookupTimeout bounds the lookup for messages of an outbox, which retries them.
	// It is longer than an election after the end of a process.
	deliverLookupTimeout = 3 * time.Second
)

// Directory finds the leaders of partitions.
type Directory struct {
	cfg      DirectoryConfig
	handles  []Handle
	counters *counters
}

// NewDirectory returns the directory of a cluster with the given number of partitions.
func NewDirectory(partitions uint32, cfg DirectoryConfig) *Directory {
	if cfg.LookupTimeout == 0 {
		cfg.LookupTimeout = FailoverBudget
	}
	if cfg.Unresponsive == nil {
		cfg.Unresponsive = func(string) bool { return false }
	}
	if cfg.AddressOf == nil {
		cfg.AddressOf = configuredAddress
	}
	d := &Directory{cfg: cfg, handles: make([]Handle, partitions), counters: new(counters)}
	for i := range d.handles {
		d.handles[i].d, d.handles[i].id = d, uint32(i)
	}
	return d
}

// Partition returns the handle of a partition.
func (d *Directory) Partition(id uint32) *Handle { return &d.handles[id] }

// Partitions returns the number of partitions.
func (d *Directory) Partitions() int { return len(d.handles) }

// Handle is a location-independent partition. It sends requests to the leader, and while
// there is none, retries them until the lookup timeout or the context ends, but only if
// they certainly had no effect.
type Handle struct {
	d  *Directory
	id uint32
	// leader caches the address of the last known leader, for nodes without a replica of
	// the partition.
	leader atomic.Pointer[string]
	// moment is the last one that a leader on another node has sent, nil if there is none.
	moment atomic.Pointer[machine.Moment]
}

// Moment returns the last known moment of the leader, for Invoke.Since; zero if none is known.
func (h *Handle) Moment() machine.Moment {
	if p := h.leading(); p != nil {
		return p.Moment()
	}
	if m := h.moment.Load(); m != nil {
		return *m
	}
	return machine.Moment{}
}

// HasRoom reports whether this node's replica leads, fewer than limit commands have been proposed
// there and have no outcome yet, and large ones do not occupy the partition.
func (h *Handle) HasRoom(limit int) bool {
	p := h.leading()
	if p == nil {
		return false
	}
	commands, occupied := p.Backlog()
	return commands < limit && !occupied
}

// Occupied reports whether this node's replica leads, and large commands occupy the partition.
func (h *Handle) Occupied() bool {
	p := h.leading()
	if p == nil {
		return false
	}
	_, occupied := p.Backlog()
	return occupied
}

// ID returns the partition's number.
func (h *Handle) ID() uint32 { return h.id }

// Local reports whether this node's replica leads.
func (h *Handle) Local() bool { return h.leading() != nil }

// leading returns this node's replica if it leads, nil otherwise.
func (h *Handle) leading() Local {
	if p := h.d.cfg.Local(h.id); p != nil && p.Leading() {
		return p
	}
	return nil
}

// localLeader is leading for a request, which it counts as a local one if there is a replica.
func (h *Handle) localLeader() Local {
	p := h.leading()
	if p != nil {
		h.d.counters.local.Add(1)
	}
	return p
}

// cacheLeader records the address of the leader.
func (h *Handle) cacheLeader(address string) {
	if known := h.leader.Load(); known == nil || *known != address {
		h.leader.Store(&address)
	}
}

// evictLeader removes a node from the leader cache.
func (h *Handle) evictLeader(address string) {
	if known := h.leader.Load(); known != nil && *known == address {
		h.leader.CompareAndSwap(known, nil)
	}
}
