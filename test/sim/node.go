package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"platform/internal/cluster/fabric"
	"platform/internal/feature"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
	"platform/invoker"
	"platform/invoker/endpoint"
	"platform/metadata"
	"platform/partition"
	"platform/partition/store"
)

const clusterID = "simulation"

func nameOf(address string) string {
	name, _, _ := strings.Cut(address, ":")
	return name
}

func addressOf(name string) string { return name + ":5122" }

// node is a server of the cluster: its disk and its current incarnation.
type node struct {
	sim  *Sim
	name string
	rng  *rand.Rand

	starting sync.Mutex // held while the node starts

	mu         sync.Mutex // covers the fields below
	disk       *disk
	skew       time.Duration // of its wall clock
	supports   feature.Level
	knownLevel feature.Level   // of the cluster, which the node learned
	knownTable [][]raft.Server // by partition
	lives      int
	current    *incarnation // nil while the node is down
}

// incarnation is a node from a start to the next crash or shutdown.
type incarnation struct {
	n      *node
	number int
	ctx    context.Context // canceled first
	end    context.CancelFunc

	disk      *disk
	host      *host
	logs      *logstore.DB
	tables    *store.DB
	hard      *hardstate.File
	watchdog  *watchdog.Watchdog
	transport *raftgroup.Transport
	client    *fabric.Client
	server    *fabric.Server
	directory *fabric.Directory
	invoker   *invoker.Invoker

	following sync.WaitGroup // followTable

	mu         sync.Mutex // covers partitions
	partitions []*partition.Partition
}

func (s *Sim) newNode(name string) *node {
	rng := newRand(s.seed, "disk "+name)
	return &node{
		sim: s, name: name, rng: rng, disk: newDisk(vfs.NewCrashableMem(), rng), knownTable: make([][]raft.Server, s.opts.Partitions),
	}
}

// running returns the current incarnation, nil while the node is down.
func (n *node) running() *incarnation {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// Now implements partition.Clock.
func (n *node) Now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sim.now().Add(n.skew)
}

// AwaitNow implements partition.Clock.
func (n *node) AwaitNow(context.Context) {}

func (n *node) slowDisk(lag time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disk.setSyncDelay(lag)
}

func (n *node) step(skew time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.skew = skew
}

// start starts a new incarnation.
func (n *node) start() error {
	n.mu.Lock()
	n.lives++
	l := &incarnation{n: n, number: n.lives, disk: n.disk, partitions: make([]*partition.Partition, n.sim.opts.Partitions)}
	n.mu.Unlock()
	l.ctx, l.end = context.WithCancel(context.Background())
	n.sim.trace.add("%s starts", n.name)
	if err := l.open(); err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	n.mu.Lock()
	n.current = l
	rng := rand.New(rand.NewPCG(n.rng.Uint64(), n.rng.Uint64()))
	n.mu.Unlock()
	l.following.Go(func() { l.followTable(rng) })
	return nil
}

func (l *incarnation) log() *slog.Logger { return l.n.sim.log.With("node", l.n.name) }

func (l *incarnation) open() (err error) {
	n, s := l.n, l.n.sim
	log := l.log()
	if l.logs, err = logstore.Open("log", logstore.Options{FS: l.disk, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Logger: log}); err != nil {
		return err
	}
	if l.tables, err = store.Open("state", store.Options{FS: l.disk, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Logger: log}); err != nil {
		return err
	}
	if l.hard, err = hardstate.Open("/HARDSTATE", n.name, l.disk, log); err != nil {
		return err
	}
	l.watchdog = watchdog.New(watchdog.Config{Logger: log, Exit: func() { go n.crash(l, 100) }})
	l.host = newHost(s.net, n.name)
	dial := func(address string) (nodelink.Conn, error) { return l.host.dial(address), nil }
	l.transport, err = raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: clusterID, NodeID: n.name, Address: raft.ServerAddress(addressOf(n.name)), Logger: log,
		Dial:    dial,
		Refused: func(ctx context.Context, a raft.ServerAddress) bool { return l.connectionRefused(ctx, string(a)) },
	})
	if err != nil {
		return err
	}
	self := fabric.Identity{
		Identity:  nodelink.Identity{ClusterID: func() string { return clusterID }, Node: n.name, Incarnation: n.name, Address: addressOf(n.name)},
		ReplicaID: n.name,
	}
	l.client = fabric.NewClient(fabric.ClientConfig{Self: self, Log: log, Dial: dial, Level: n.level})
	l.server = fabric.NewServer(fabric.ServerConfig{Self: self, Local: l.local, Seen: l.client.Seen, Relay: l.client, Log: log})
	l.directory = fabric.NewDirectory(s.opts.Partitions, fabric.DirectoryConfig{
		Local: l.local, Self: addressOf(n.name), Replicas: func(uint32) []string { return s.addresses(n.name) },
		Remote: func(address string, id uint32) fabric.Replica { return l.client.Remote(address, id) }, Unresponsive: l.client.Unresponsive,
	})
	cfg := invoker.DefaultConfig()
	// Bound retry delays, so that no attempt waits beyond the end of the run.
	cfg.Defaults.Retry.MaxInterval = 5 * time.Second
	cfg.Open = func(r endpoint.Receiver) invoker.Stream { return n.open(l, r) }
	l.invoker = invoker.New(cfg, s, log)
	l.transport.Register(l.host)
	l.server.Register(l.host)
	s.net.listen(addressOf(n.name), l.host)
	for id := range s.opts.Partitions {
		if err := l.openReplica(id); err != nil {
			return err
		}
	}
	return nil
}

// openPartition opens a replica. It is a first one if begins is set; otherwise it waits
// for the leader of the partition to add it.
func (l *incarnation) openPartition(id uint32, logs logstore.Storage, begins bool) error {
	n, s := l.n, l.n.sim
	tables, err := l.tables.Partition(id)
	if err != nil {
		return err
	}
	hard, err := l.hard.Group(partition.GroupID(id))
	if err != nil {
		return err
	}
	var voters []raft.Server // none if the leader adds this replica
	if begins {
		if voters = votersOf(n.knownReplicas(id)); !holds(voters, n.name) {
			voters = nil
		}
	}
	observer := &leaderObserver{Invoker: l.invoker, l: l, tables: tables}
	if s.hasDefect(lowAppliedIndex) && l.number > 1 {
		if err := lowerAppliedIndex(tables, logs); err != nil {
			return err
		}
	}
	p, err := partition.Open(partition.Config{
		ID: id, Count: s.opts.Partitions, Node: n.name, Tables: tables, Flush: l.tables.Flush, Invoker: observer,
		Proposals: raftgroup.ProposerConfig{MaxBatchCommands: s.batch},
		Deliver:   l.deliver, Streams: &topicReader{l}, Level: n.level, Clock: n, Log: l.log(),
		Flow: partition.FlowConfig{Enable: true, EnabledEverywhere: func() bool { return true }, Rules: &s.rules},
		Group: raftgroup.Config{
			Storage: logs, HardState: hard, Transport: l.transport, Profile: s.profile(), Voters: voters, Watchdog: l.watchdog,
			LocalID: metadata.ReplicaID(raft.ServerID(n.name), hard.Record().Replica),
		},
		OnFailed: func(err error) {
			if l.ctx.Err() == nil {
				s.violate("%s: partition %d failed: %v", n.name, id, err)
			}
		},
	})
	if err != nil {
		return err
	}
	observer.replica.Store(p)
	l.setPartition(id, p)
	return nil
}

func (l *incarnation) setPartition(id uint32, p *partition.Partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partitions[id] = p
}

func (l *incarnation) partition(id uint32) *partition.Partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.partitions[id]
}

// local returns this node's replica of a partition, for other nodes and clients.
func (l *incarnation) local(id uint32) fabric.Local {
	if p := l.partition(id); p != nil {
		return l.serveReplica(p)
	}
	return nil
}

// connectionRefused reports whether no host listens at an address.
func (l *incarnation) connectionRefused(ctx context.Context, address string) bool {
	probe := &conn{from: l.host, address: address}
	probe.ctx, probe.cancel = context.WithCancel(l.ctx)
	defer probe.cancel()
	ctx, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
	defer cancel()
	_, err := probe.connect(ctx)
	return err != nil && ctx.Err() == nil && l.n.sim.net.host(address) == nil
}

// crash ends an incarnation immediately. The disk keeps all synced data and unsynced percent
// of the rest; 100 corresponds to a killed process.
func (n *node) crash(l *incarnation, unsynced int) {
	n.mu.Lock()
	if n.current != l || l == nil {
		n.mu.Unlock()
		return
	}
	n.current = nil
	n.sim.net.listen(addressOf(n.name), nil)
	l.end() // services are not notified
	l.host.cancel()
	n.sim.net.breakNode(n.name)
	n.disk = n.diskAfterCrash(l.disk.crashed(unsynced, n.rng))
	n.mu.Unlock()
	n.sim.trace.add("%s crashes, %d%% of what was not synced is kept", n.name, unsynced)
	n.sim.wg.Go(func() { l.close() })
}

const closing = 30 * time.Second

// close releases the resources of an incarnation. Later writes go to an unused disk.
func (l *incarnation) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	l.following.Wait()
	var wg sync.WaitGroup
	for id := range l.n.sim.opts.Partitions {
		p := l.partition(id)
		if p == nil {
			continue
		}
		wg.Go(func() {
			if err := p.Stop(ctx); err != nil && !errors.Is(err, raftgroup.ErrStopped) {
				l.n.sim.trace.add("%s: partition %d does not stop: %v", l.n.name, id, err)
			}
		})
	}
	wg.Wait()
	l.invoker.Close()
	l.server.Close()
	_ = l.client.Close()
	_ = l.transport.Close()
	l.host.cancel()
	l.watchdog.Close()
	_ = l.tables.Close()
	_ = l.logs.Close()
	_ = l.hard.Close()
}
