package metadata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/metadata/placement"
	"platform/test/harness/ports"
)

// testCluster is a set of nodes in the test's process that communicate over loopback.
type testCluster struct {
	t   *testing.T
	dir string

	// mu covers the fields below.
	mu       sync.Mutex
	running  map[raft.ServerAddress]*testNode
	liveness map[uint32]placement.Liveness // overrides the liveness that follows from running
	// lost decides whether the response to a forwarded entry is lost.
	lost func() bool
	// announced is what nodes report about feature levels, by name; others do not respond.
	announced map[string]Announcement
	// hung is a node that does not respond.
	hung raft.ServerAddress
	// silent is a node that does not report what it has applied.
	silent raft.ServerAddress
}

// testNode is one node.
type testNode struct {
	*Store
	cluster   *testCluster
	self      Node
	address   raft.ServerAddress
	transport *raftgroup.Transport
	server    *grpc.Server
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	observers atomic.Int32 // of the controller
}

func newTestCluster(t *testing.T) *testCluster {
	c := &testCluster{t: t, dir: t.TempDir(), running: map[raft.ServerAddress]*testNode{}, liveness: map[uint32]placement.Liveness{}}
	t.Cleanup(func() {
		for _, n := range c.nodes() {
			n.stop()
		}
	})
	return c
}

func (c *testCluster) nodes() (list []*testNode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.running {
		list = append(list, n)
	}
	return list
}

// start starts a node, whose data survives it. The first node of a cluster creates the
// group, others wait to be added. An empty address takes a free one.
func (c *testCluster) start(name, incarnation, address string, first bool) *testNode {
	t := c.t
	if address == "" {
		address = ports.Address(t) // it may be started again
	}
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	n := &testNode{cluster: c, address: raft.ServerAddress(listener.Addr().String())}
	n.self = Node{Name: name, Incarnation: incarnation, FabricAddress: "http://" + listener.Addr().String() + "/"}
	level := slog.LevelError + 1
	if os.Getenv("METADATA_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level})).With("node", name)
	n.transport, err = raftgroup.NewTransport(raftgroup.TransportConfig{
		ClusterID: "test", NodeID: name, Incarnation: incarnation, Address: n.address, Logger: log,
	})
	require.NoError(t, err)
	n.server = grpc.NewServer(nodelink.ServerOptions()...)
	n.transport.Register(n.server)
	n.wg.Go(func() { _ = n.server.Serve(listener) })
	cfg := Config{
		Dir: filepath.Join(c.dir, name+incarnation), LocalID: n.self.ServerID(), Transport: n.transport,
		Profile: raftgroup.Test(), Logger: log, Forward: c.forward, snapshotEvery: 50,
		Join: !first,
	}
	if first {
		cfg.Voters = []raft.Server{{ID: cfg.LocalID, Address: n.address}}
	}
	n.Store, err = Open(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.wg.Go(func() { _ = n.Run(ctx) })
	n.wg.Go(func() {
		_ = n.RunController(ctx, func() Observer {
			n.observers.Add(1)
			return c
		})
	})
	c.mu.Lock()
	c.running[n.address] = n
	c.mu.Unlock()
	return n
}

// stop shuts a node down.
func (n *testNode) stop() {
	n.cluster.mu.Lock()
	delete(n.cluster.running, n.address)
	n.cluster.mu.Unlock()
	n.cancel()
	require.NoError(n.cluster.t, n.Close())
	n.end()
}

// kill disconnects a node first, so that it cannot transfer leadership.
func (n *testNode) kill() {
	n.cluster.mu.Lock()
	delete(n.cluster.running, n.address)
	n.cluster.mu.Unlock()
	n.cancel()
	n.end()
	require.NoError(n.cluster.t, n.Close())
}

func (n *testNode) end() {
	_ = n.transport.Close()
	n.server.Stop()
	n.wg.Wait()
}

// forward does what a node's RPC would do.
func (c *testCluster) forward(ctx context.Context, leader raft.ServerAddress, entry []byte) ([]byte, uint64, error) {
	c.mu.Lock()
	n, lost, hung := c.running[leader], c.lost, c.hung == leader
	c.mu.Unlock()
	if hung {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	if n == nil {
		return nil, 0, errors.New("connection refused")
	}
	result, index, err := n.HandleForward(ctx, entry)
	if err == nil && lost != nil && lost() {
		return nil, 0, errors.New("connection lost")
	}
	return result, index, err
}

// Liveness implements Observer.
func (c *testCluster) Liveness() map[uint32]placement.Liveness {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[uint32]placement.Liveness{}
	for _, n := range c.running {
		if at, known := n.source.current().node(n.self.Name); known && at.Incarnation == n.self.Incarnation {
			all[at.ID] = placement.Alive
		}
	}
	for id, l := range c.liveness {
		all[id] = l
	}
	return all
}

// Partitions implements Observer: the configurations match the table.
func (c *testCluster) Partitions(context.Context) map[uint32]Configuration {
	all := map[uint32]Configuration{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.running {
		if !n.Group().IsLeader() {
			continue
		}
		v := n.source.current()
		for _, p := range v.layout.Partitions {
			conf := Configuration{}
			for _, id := range p.Replicas {
				at := slices.IndexFunc(v.nodes, func(n Node) bool { return n.ID == id })
				conf.Servers = append(conf.Servers, raft.Server{ID: v.nodes[at].ServerID(), Address: v.nodes[at].RaftAddress()})
			}
			if len(conf.Servers) > 0 {
				conf.Leader = conf.Servers[0].ID
				all[p.ID] = conf
			}
		}
	}
	return all
}

// Applied implements Observer.
func (c *testCluster) Applied(_ context.Context, n Node) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := c.running[n.RaftAddress()]; at != nil && n.RaftAddress() != c.silent {
		return at.AppliedIndex(), nil
	}
	return 0, errors.New("connection refused")
}

// Announcements implements Observer.
func (c *testCluster) Announcements(context.Context) map[uint32]Announcement {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[uint32]Announcement{}
	for _, n := range c.running {
		at, known := n.source.current().node(n.self.Name)
		a, answers := c.announced[n.self.Name]
		if known && answers {
			a.Server = n.self.ServerID()
			all[at.ID] = a
		}
	}
	return all
}

// announce changes what a node reports about feature levels.
func (c *testCluster) announce(n *testNode, a Announcement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.announced == nil {
		c.announced = map[string]Announcement{}
	}
	c.announced[n.self.Name] = a
}

// Changed implements Observer.
func (c *testCluster) Changed() <-chan struct{} { return nil }

// startAll starts n1 to n<count>, registered, with the given partitions.
func (c *testCluster) startAll(count int, partitions uint32) []*testNode {
	var nodes []*testNode
	for i := range count {
		n := c.start(fmt.Sprint("n", i+1), "a", "", i == 0)
		if i == 0 {
			_, err := n.Provision(c.t.Context(), Cluster{Name: "local", Partitions: partitions, Replication: 3})
			require.NoError(c.t, err)
		}
		nodes = append(nodes, n)
		_, err := nodes[0].AddNode(c.t.Context(), n.self, false)
		require.NoError(c.t, err)
	}
	return nodes
}

// awaitVoters waits until each of the nodes knows a leader and the group has the given
// number of voters and other servers.
func (c *testCluster) awaitVoters(voters, others int, nodes ...*testNode) {
	c.t.Helper()
	require.EventuallyWithT(c.t, func(t *assert.CollectT) {
		for _, n := range nodes {
			require.NotEmpty(t, n.Group().Leader().ID, n.self.Name)
			v, o := 0, 0
			for _, s := range n.Group().Servers() {
				if s.Suffrage == raft.Voter {
					v++
				} else {
					o++
				}
			}
			require.Equal(t, voters, v, "voters as %s sees it: %v", n.self.Name, n.Group().Servers())
			require.Equal(t, others, o, "others as %s sees it", n.self.Name)
		}
	}, time.Minute, 5*time.Millisecond)
}

// leader waits until one of the nodes leads.
func (c *testCluster) leader(nodes ...*testNode) (leader, follower *testNode) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		leader, follower = nil, nil
		for _, n := range nodes {
			if n.Group().IsLeader() {
				leader = n
			} else {
				follower = n
			}
		}
		return leader != nil
	}, time.Minute, time.Millisecond)
	return leader, follower
}
