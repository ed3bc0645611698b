package fabric

import (
	"sync/atomic"
	"time"

	"platform/internal/raftgroup"
)

// DirectoryConfig says where the replicas of partitions are.
type DirectoryConfig struct {
	// Local returns this node's replica of a partition, nil if it has none. It is
	// asked for each request and must be quick.
	Local func(partition uint32) Local
	// Remote returns the replica on another node; Client.Remote is one. nil: there
	// are no other nodes.
	Remote func(address string, partition uint32) Replica
	// Replicas are the addresses of the nodes that the partition table gives a
	// partition to, the most likely leader first; nil: there are no other nodes.
	Replicas func(partition uint32) []string
	// Silent reports whether the node at an address gave no sign of life lately. It is
	// asked last. nil: not known of any.
	Silent func(address string) bool
	// AddressOf is where a leader is reached now; nil: at the address of the Raft
	// configuration.
	AddressOf func(raftgroup.Leader) string
	// Self is the address of this node, which is never asked over the network.
	Self string
	// Patience is how long a request looks for a leader, three seconds when 0.
	Patience time.Duration
	// ReadPatience is the same for what operators read (records, journals, tables), which
	// nobody above asks for again; ten seconds when 0.
	ReadPatience time.Duration
}

const (
	// defaultPatience is longer than an election takes after a process has ended.
	defaultPatience = 3 * time.Second
	// defaultReadPatience is longer than it takes to give up a node that is silent.
	defaultReadPatience = 10 * time.Second
)

// Directory finds the leaders of partitions.
type Directory struct {
	cfg      DirectoryConfig
	handles  []Handle
	counters *counters
}

// NewDirectory returns the directory of a cluster with that many partitions.
func NewDirectory(partitions uint32, cfg DirectoryConfig) *Directory {
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.ReadPatience == 0 {
		cfg.ReadPatience = defaultReadPatience
	}
	if cfg.Silent == nil {
		cfg.Silent = func(string) bool { return false }
	}
	if cfg.AddressOf == nil {
		cfg.AddressOf = configured
	}
	d := &Directory{cfg: cfg, handles: make([]Handle, partitions), counters: new(counters)}
	for i := range d.handles {
		d.handles[i].d, d.handles[i].id = d, uint32(i)
	}
	return d
}

// Partition returns the handle of a partition.
func (d *Directory) Partition(id uint32) *Handle { return &d.handles[id] }

// Partitions is how many partitions there are.
func (d *Directory) Partitions() int { return len(d.handles) }

// Handle is a partition, wherever it is led. A request goes to its leader; while none
// is to be had, it is repeated for as long as the directory's patience and the context
// last, but only if it certainly had no effect.
type Handle struct {
	d  *Directory
	id uint32
	// leader is the address of the node that answered last, for nodes without a
	// replica of their own.
	leader atomic.Pointer[string]
}

// ID is the partition's number.
func (h *Handle) ID() uint32 { return h.id }

// leading is the replica on this node if it leads, else nil. It is going to be asked.
func (h *Handle) leading() Local {
	if p := h.d.cfg.Local(h.id); p != nil && p.Leading() {
		h.d.counters.local.Add(1)
		return p
	}
	return nil
}

// remember notes which node led last.
func (h *Handle) remember(address string) {
	if known := h.leader.Load(); known == nil || *known != address {
		h.leader.Store(&address)
	}
}

// doubt forgets that a node leads.
func (h *Handle) doubt(address string) {
	if known := h.leader.Load(); known != nil && *known == address {
		h.leader.CompareAndSwap(known, nil)
	}
}
