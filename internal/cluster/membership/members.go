package membership

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// leaveTimeout bounds how long a leaving node waits for its announcement to spread.
const leaveTimeout = time.Second

// Members is this node's view of the nodes of the cluster.
type Members struct {
	cfg       Config
	log       *slog.Logger
	transport *transport
	list      *memberlist.Memberlist
	table     *table
	self      atomic.Pointer[description]
	conflicts *conflicts
	unjoined  atomic.Pointer[map[string]error] // the map is immutable once stored
	clocks    *clocks

	cancel context.CancelFunc // ends the goroutines of wg
	wg     sync.WaitGroup

	updateMu sync.Mutex // serializes UpdateMeta
	// leaveMu covers closed and is held by Leave, so that Close waits for it.
	leaveMu sync.Mutex
	closed  bool
}

// description is this node and its encoded form.
type description struct {
	Member
	encoded []byte
}

func describe(m Member) (*description, error) {
	encoded, err := encodeMember(m)
	return &description{Member: m, encoded: encoded}, err
}

// Open starts gossiping. It returns immediately; joining through the seeds is retried in
// the background until Close. On error it closes the sockets.
func Open(cfg Config) (*Members, error) {
	ctx, cancel := context.WithCancel(context.Background())
	m, err := open(cfg)
	if err != nil {
		cancel()
		for _, socket := range []io.Closer{cfg.Streams, cfg.Packets} {
			if socket != nil {
				_ = socket.Close()
			}
		}
		return nil, err
	}
	m.cancel = cancel
	m.wg.Go(func() { m.runJoin(ctx) })
	m.wg.Go(func() { m.resolveConflicts(ctx) })
	m.wg.Go(func() { m.logChanges(ctx) })
	return m, nil
}

// open starts the gossip without joining other nodes.
func open(cfg Config) (*Members, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	self, err := describe(Member{
		Meta: cfg.Meta, Name: cfg.Name, Incarnation: cfg.Incarnation, Address: cfg.Address,
		Started: time.UnixMilli(time.Now().UnixMilli()), State: Alive, Self: true,
	})
	if err != nil {
		return nil, err
	}
	m := &Members{
		cfg: cfg, log: cfg.Logger, transport: newTransport(cfg), table: newTable(cfg.profile),
		conflicts: newConflicts(), clocks: newClocks(cfg.wall, cfg.Logger),
	}
	m.self.Store(self)
	if m.list, err = memberlist.Create(m.gossipConfig()); err != nil {
		_ = m.transport.Shutdown()
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	return m, nil
}

func (m *Members) gossipConfig() *memberlist.Config {
	p := m.cfg.profile
	c := memberlist.DefaultLANConfig()
	c.Name = m.cfg.Name
	c.Label = m.cfg.ClusterName
	if len(c.Label) > memberlist.LabelMaxSize/2 { // the label is part of each packet, whose size is limited
		hash := clusterHash(c.Label)
		c.Label = string(hash[:])
	}
	c.Transport = m.transport
	c.BindPort, c.AdvertisePort = identityPort, identityPort
	c.TCPTimeout = p.streamTimeout
	c.ProbeInterval, c.ProbeTimeout = p.probeInterval, p.probeTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = p.suspicionMult, 3
	c.AwarenessMaxMultiplier = 1 // see "No health awareness" in DESIGN.md
	c.GossipInterval, c.PushPullInterval = p.gossipInterval, p.syncInterval
	c.EnableCompression = false
	c.UDPBufferSize -= sealedHeaderBytes + sealedOverhead
	c.SecretKey = m.cfg.Key
	c.DeadNodeReclaimTime = time.Nanosecond // the name of a dead node can be reused immediately
	d := &delegate{m}
	c.Delegate, c.Events, c.Alive, c.Conflict, c.Ping = d, d, d, d, d
	c.Logger = newGossipLogger(m.log)
	return c
}

// Nodes returns the members sorted by name, including this node. Members that died or
// left are listed for an hour. Once this node belongs to a cluster, nodes of other
// clusters with the same name are not listed.
func (m *Members) Nodes() []Member {
	all := m.table.snapshot()
	nodes := all[:0]
	for _, member := range all {
		if !m.foreign(member) {
			nodes = append(nodes, member)
		}
	}
	return nodes
}

// selfMember returns this node.
func (m *Members) selfMember() Member { return m.self.Load().Member }

// State returns the state of one node. It is Unknown for an incarnation that another one
// has replaced.
func (m *Members) State(name, incarnation string) State {
	member, ok := m.table.get(name)
	if !ok || member.Incarnation != incarnation || m.foreign(member) {
		return Unknown
	}
	return member.State
}

// Watch returns a channel that receives a value after Nodes has changed. Several changes
// may be combined into one value. The caller must call stop when done.
func (m *Members) Watch() (changes <-chan struct{}, stop func()) { return m.table.watch() }

// foreign reports whether a member belongs to another cluster of the same name.
func (m *Members) foreign(member Member) bool {
	own := m.self.Load().ClusterID
	return own != "" && member.ClusterID != "" && member.ClusterID != own
}

// UpdateMeta changes this node's metadata. It does not wait until the change has spread.
func (m *Members) UpdateMeta(change func(*Meta)) error {
	m.updateMu.Lock()
	defer m.updateMu.Unlock()
	member := m.self.Load().Member
	change(&member.Meta)
	self, err := describe(member)
	if err != nil {
		return err
	}
	m.self.Store(self)
	_ = m.list.UpdateNode(time.Nanosecond) // the error only means that the change has not spread yet
	return nil
}

// Leave announces that this node is stopping, so that other nodes need not detect it. It
// returns when they have been notified or ctx ends. Close must follow.
func (m *Members) Leave(ctx context.Context) error {
	if m.conflicts.active() {
		return nil // the announcement would declare the rightful owner of the name as gone
	}
	done := make(chan error, 1)
	m.leaveMu.Lock()
	if m.closed {
		m.leaveMu.Unlock()
		return nil
	}
	m.wg.Go(func() {
		defer m.leaveMu.Unlock()
		done <- m.leave(ctx)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("leave: %w", ctx.Err())
	}
}

// leave notifies each node directly, which is fast, and then leaves by gossip: that
// reaches the nodes that could not be notified directly, and stops others from probing
// this node.
func (m *Members) leave(ctx context.Context) error {
	direct, cancel := context.WithTimeout(ctx, leaveTimeout/2)
	defer cancel()
	notified := m.broadcast(direct, encodeLeave(m.self.Load()))
	timeout := leaveTimeout
	if notified {
		timeout = 2 * m.cfg.profile.gossipInterval
	}
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(deadline)), time.Nanosecond)
	}
	if err := m.list.Leave(timeout); err != nil && !notified {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// broadcast sends a message to all other live nodes. It reports whether all sends
// succeeded before ctx ended.
func (m *Members) broadcast(ctx context.Context, message []byte) bool {
	others := slices.DeleteFunc(m.Nodes(), func(member Member) bool { return member.Self || member.State != Alive })
	results := make(chan error, len(others))
	for _, member := range others {
		to := &memberlist.Node{Name: member.Name, Addr: member.identity().ip(), Port: identityPort}
		m.wg.Go(func() { results <- m.list.SendReliable(to, message) })
	}
	all := true
	for range others {
		select {
		case err := <-results:
			all = all && err == nil
		case <-ctx.Done():
			return false
		}
	}
	return all
}

// Close stops the gossip and closes the sockets. Without a preceding Leave, other nodes
// consider this node crashed.
func (m *Members) Close() error {
	m.leaveMu.Lock()
	defer m.leaveMu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.cancel()
	err := m.list.Shutdown()
	m.wg.Wait()
	return err
}

// logChanges logs state changes of other nodes until ctx ends.
func (m *Members) logChanges(ctx context.Context) {
	changes, stop := m.Watch()
	defer stop()
	known := make(map[string]Member)
	for {
		for _, member := range m.Nodes() {
			old := known[member.Name]
			known[member.Name] = member
			if member.Self || (old.State == member.State && old.Incarnation == member.Incarnation) {
				continue
			}
			level := slog.LevelInfo
			if member.State == Dead { // it did not say that it leaves
				level = slog.LevelWarn
			}
			m.log.Log(ctx, level, "cluster node changed state", "state", member.State.String(),
				"node", member.Name, "address", member.Address, "incarnation", member.Incarnation)
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
	}
}
