package partition

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/feature"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/invoker"
	"platform/metadata"
	"platform/partition/machine"
	"platform/partition/store"
	"platform/test/harness/ports"
)

// replicaSet is one partition with replicas on several hosts of this process, over real
// connections, logs and tables, with a service that uses the Go SDK.
type replicaSet struct {
	t        *testing.T
	services *testNode // the registry of the invokers
	network  *testNetwork
	profile  raftgroup.Profile
	rules    RuleSource
	tune     func(*Config) // nil: no changes

	// newDisk creates the disk of a host; nil: a directory of the file system.
	newDisk func() *vfs.MemFS
	worker  *worker  // counts power losses, if there are any
	lost    sync.Map // weak pointers to partitions whose host has lost power; strong ones would keep their disks

	mu    sync.RWMutex // covers hosts and what is in them
	hosts []*host
}

// host is a node, which may be down.
type host struct {
	name    string // also the replica's ID
	dir     string
	address string
	join    bool
	disk    *vfs.MemFS // nil: dir
	hard    *hardstate.File
	replica uint32        // how often it was rebuilt
	level   atomic.Uint32 // the cluster's feature level as known to the node; 0: the first

	logs      *logstore.DB
	tables    *store.DB
	own       *store.Partition
	transport *raftgroup.Transport
	server    *grpc.Server
	served    chan struct{}
	invoker   *invoker.Invoker
	p         *Partition // nil while it is down
}

// newReplicaSet starts three hosts. tune may change the profile.
func newReplicaSet(t *testing.T, tune func(*replicaSet), services ...restate.ServiceDefinition) *replicaSet {
	t.Helper()
	c := &replicaSet{t: t, services: &testNode{}, network: newTestNetwork(), profile: raftgroup.Test()}
	if tune != nil {
		tune(c)
	}
	first := invoker.New(invoker.DefaultConfig(), c.services, slog.New(slog.DiscardHandler))
	c.services.discover(t, first, services)
	first.Close()
	for _, name := range []string{"a", "b", "c"} {
		c.add(name, "", false)
	}
	t.Cleanup(func() {
		c.network.repair()
		for i, h := range c.hosts {
			c.close(i)
			if h.hard != nil {
				require.NoError(t, h.hard.Close())
			}
		}
	})
	for i := range c.hosts {
		c.start(i)
	}
	return c
}

// add creates a host, which start starts, at the address of another one or at a new one.
func (c *replicaSet) add(name, address string, join bool) int {
	if address == "" {
		address = ports.Address(c.t)
	}
	c.network.mu.Lock()
	c.network.names[raft.ServerAddress(address)] = name
	c.network.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &host{name: name, address: address, join: join}
	if c.newDisk != nil {
		h.disk = c.newDisk()
	} else {
		h.dir = c.t.TempDir()
	}
	c.hosts = append(c.hosts, h)
	return len(c.hosts) - 1
}

func (c *replicaSet) servers(hosts ...int) (out []raft.Server) {
	for _, i := range hosts {
		h := c.hosts[i]
		out = append(out, raft.Server{ID: h.id(), Address: raft.ServerAddress(h.address)})
	}
	return out
}

// testLog is silent unless enabled.
func testLog(t *testing.T, host string) *slog.Logger {
	if os.Getenv("PARTITION_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil)).With("host", host)
}

func (c *replicaSet) start(i int) {
	c.t.Helper()
	require.NoError(c.t, c.tryStart(i))
}

func (c *replicaSet) tryStart(i int) error {
	t, h := c.t, c.hosts[i]
	log := testLog(t, h.name)
	logs, tables, err := h.open(t)
	if err != nil {
		return err
	}
	h.logs, h.tables = logs, tables
	lis, err := net.Listen("tcp", h.address)
	require.NoError(t, err)
	h.transport, err = raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: "test", NodeID: h.name, Address: raft.ServerAddress(h.address), Logger: log,
		DialOptions: []grpc.DialOption{
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(c.network.dialer(h.name)),
		},
	})
	require.NoError(t, err)
	h.server, h.served = grpc.NewServer(nodelink.ServerOptions()...), make(chan struct{})
	h.transport.Register(h.server)
	go func(server *grpc.Server, served chan struct{}) {
		defer close(served)
		_ = server.Serve(lis)
	}(h.server, h.served)
	h.invoker = invoker.New(invoker.DefaultConfig(), c.services, log)
	h.own, err = h.tables.Partition(0)
	require.NoError(t, err)
	storage, err := h.logs.Storage(GroupID(0))
	require.NoError(t, err)
	cfg := Config{
		ID: 0, Count: 1, Node: h.name, Tables: h.own, Flush: h.tables.Flush, Invoker: h.invoker,
		Deliver: func(context.Context, uint32, *machine.Deliver) error { return errors.New("one partition only") },
		Flow:    FlowConfig{Rules: c.rules},
		Level:   func() feature.Level { return feature.Announced(h.level.Load()) },
		Group:   raftgroup.Config{Storage: storage, Transport: h.transport, Profile: c.profile, LocalID: h.id(), HardState: h.record(t)},
		Log:     log,
	}
	if !h.join {
		cfg.Group.Voters = c.servers(0, 1, 2)
	}
	if c.tune != nil {
		c.tune(&cfg)
	}
	p, err := Open(cfg)
	if err != nil {
		h.release(t)
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h.p = p
	return nil
}

// reopen opens the files of a host that is down.
func (h *host) reopen(t *testing.T) (*logstore.DB, *store.DB) {
	logs, tables, err := h.open(t)
	require.NoError(t, err)
	return logs, tables
}

// open opens the files of a host. The hard-state file is opened once per disk.
func (h *host) open(t *testing.T) (logs *logstore.DB, tables *store.DB, err error) {
	log := testLog(t, h.name)
	var disk vfs.FS
	if h.disk != nil {
		disk = h.disk
		if h.hard == nil {
			h.hard, err = hardstate.Open("HARDSTATE", h.name, disk, log)
			require.NoError(t, err)
		}
	}
	logs, err = logstore.Open(filepath.Join(h.dir, "log"), logstore.Options{FS: disk, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	tables, err = store.Open(filepath.Join(h.dir, "state"), store.Options{FS: disk, Logger: log})
	require.NoError(t, err)
	return logs, tables, nil
}

// record is the host's hard-state record, nil if it keeps none.
func (h *host) record(t *testing.T) *hardstate.State {
	if h.hard == nil {
		return nil
	}
	g, err := h.hard.Group(GroupID(0))
	require.NoError(t, err)
	return g
}

// id is the replica's ID. A rebuilt replica has a new one.
func (h *host) id() raft.ServerID { return metadata.ReplicaID(raft.ServerID(h.name), h.replica) }

// down removes the partition from the host.
func (c *replicaSet) down(i int) *Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.hosts[i].p
	c.hosts[i].p = nil
	return p
}

// close shuts a host down in order.
func (c *replicaSet) close(i int) {
	if p := c.down(i); p != nil {
		require.NoError(c.t, p.Close(context.Background()))
		c.hosts[i].release(c.t)
	}
}

// kill resets a host's connections and discards what its tables have not flushed, like a
// crash.
func (c *replicaSet) kill(i int) {
	p := c.down(i)
	if p == nil {
		return
	}
	h := c.hosts[i]
	h.server.Stop()
	<-h.served
	require.NoError(c.t, h.transport.Close())
	require.NoError(c.t, p.Stop(context.Background()))
	h.release(c.t)
}

func (h *host) release(t *testing.T) {
	h.invoker.Close()
	require.NoError(t, h.transport.Close())
	h.server.Stop()
	<-h.served
	require.NoError(t, h.tables.Close())
	require.NoError(t, h.logs.Close())
}

// partitions are those of the running hosts.
func (c *replicaSet) partitions() (out []*Partition) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, h := range c.hosts {
		if h.p != nil {
			out = append(out, h.p)
		}
	}
	return out
}

// leader waits for a host that leads and serves, other than the given ones.
func (c *replicaSet) leader(not ...int) int {
	c.t.Helper()
	leader := -1
	require.Eventually(c.t, func() bool {
		c.mu.RLock()
		defer c.mu.RUnlock()
		for i, h := range c.hosts {
			if !slices.Contains(not, i) && h.p != nil && h.p.Leading() {
				leader = i
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	return leader
}

// call calls the current leader, with the same ID, until it responds.
func (c *replicaSet) call(ctx context.Context, inv *machine.Invoke) (Ending, error) {
	inv.Request = rand.Uint64() | 1
	for {
		for _, p := range c.partitions() {
			e, _, err := p.Call(ctx, inv)
			if _, gone := c.lost.Load(weak.Make(p)); gone {
				continue // its host has no power: the response is lost
			}
			if err == nil {
				return e, nil
			}
			if !raftgroup.Definite(err) && !errors.Is(err, raftgroup.ErrUnknownOutcome) {
				return e, err
			}
		}
		select {
		case <-time.After(time.Millisecond): // there is no leader at the moment
		case <-ctx.Done():
			return Ending{}, ctx.Err()
		}
	}
}

// picture summarizes a replica's rows.
type picture struct {
	Index, Term uint64
	Rows        int
	Sum         uint64
}

func (h *host) picture(t *testing.T) picture {
	e, err := h.own.Export()
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	var p picture
	p.Index, p.Term = e.Applied()
	sum := fnv.New64a()
	require.NoError(t, e.Each(t.Context(), func(key, value []byte) error {
		p.Rows++
		_, _ = sum.Write(key)
		_, _ = sum.Write(value)
		return nil
	}))
	p.Sum = sum.Sum64()
	return p
}

// requireSame waits until the replicas have applied the same entries and compares all rows.
func (c *replicaSet) requireSame(hosts ...int) picture {
	c.t.Helper()
	var first picture
	require.Eventually(c.t, func() bool {
		at, _ := c.hosts[hosts[0]].own.Applied()
		for _, i := range hosts {
			if index, _ := c.hosts[i].own.Applied(); index != at {
				return false
			}
		}
		first = c.hosts[hosts[0]].picture(c.t)
		for _, i := range hosts[1:] {
			p := c.hosts[i].picture(c.t)
			if p.Index != first.Index {
				return false
			}
			require.Equal(c.t, first, p, "replica %s differs from %s", c.hosts[i].name, c.hosts[hosts[0]].name)
		}
		return true
	}, 2*time.Minute, 10*time.Millisecond)
	return first
}
