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

// leaveTimeout bounds how long a node that leaves waits for the news to spread.
const leaveTimeout = time.Second

// Members is this node's view of the nodes of the cluster.
type Members struct {
	cfg       Config
	log       *slog.Logger
	transport *transport
	list      *memberlist.Memberlist
	table     *table
	self      atomic.Pointer[description]
	contest   *contest
	unjoined  atomic.Pointer[map[string]error] // does not change once it is stored
	clocks    *clocks

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	updateMu sync.Mutex // serializes UpdateMeta
	// leaveMu covers closed, and keeps Close from overtaking Leave.
	leaveMu sync.Mutex
	closed  bool
}

// description is this node and its gossiped form.
type description struct {
	Member
	encoded []byte
}

func describe(m Member) (*description, error) {
	encoded, err := encodeMember(m)
	return &description{Member: m, encoded: encoded}, err
}

// Open joins the gossip. It returns at once; the seeds are tried in the background,
// for ever. An error closes the sockets.
func Open(cfg Config) (*Members, error) {
	m, err := open(cfg)
	if err != nil {
		for _, socket := range []io.Closer{cfg.Streams, cfg.Packets} {
			if socket != nil {
				_ = socket.Close()
			}
		}
		return nil, err
	}
	m.wg.Go(m.join)
	m.wg.Go(m.settle)
	m.wg.Go(m.report)
	return m, nil
}

// open starts the gossip without looking for anybody.
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
	ctx, cancel := context.WithCancel(context.Background())
	m := &Members{
		cfg: cfg, log: cfg.Logger, transport: newTransport(cfg), table: newTable(),
		contest: newContest(), clocks: newClocks(cfg.wall, cfg.Logger), ctx: ctx, cancel: cancel,
	}
	m.self.Store(self)
	if m.list, err = memberlist.Create(m.gossipConfig()); err != nil {
		cancel()
		_ = m.transport.Shutdown()
		return nil, fmt.Errorf("start gossip: %w", err)
	}
	return m, nil
}

func (m *Members) gossipConfig() *memberlist.Config {
	p := m.cfg.Profile
	c := memberlist.DefaultLANConfig()
	c.Name = m.cfg.Name
	c.Label = m.cfg.ClusterName
	if len(c.Label) > memberlist.LabelMaxSize/2 { // packets are small
		hash := clusterHash(c.Label)
		c.Label = string(hash[:])
	}
	c.Transport = m.transport
	c.BindPort, c.AdvertisePort = identityPort, identityPort
	c.TCPTimeout = p.StreamTimeout
	c.ProbeInterval, c.ProbeTimeout = p.ProbeInterval, p.ProbeTimeout
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = p.SuspicionMult, 3
	c.AwarenessMaxMultiplier = 1 // a node that sees failures must not get slow to see the next, nor to stop
	c.GossipInterval, c.PushPullInterval = p.GossipInterval, p.SyncInterval
	c.EnableCompression = false
	c.UDPBufferSize -= packetHeaderBytes
	c.SecretKey = m.cfg.Key
	c.DeadNodeReclaimTime = time.Nanosecond // the name of a dead node is free
	d := &delegate{m}
	c.Delegate, c.Events, c.Alive, c.Conflict, c.Ping = d, d, d, d, d
	c.Logger = newGossipLogger(m.log)
	return c
}

// Nodes returns the members by name, this node among them. Members that died or left
// are listed for an hour. A node of another cluster that has the same cluster name is
// not listed once this node is part of a cluster.
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

// Self returns this node.
func (m *Members) Self() Member { return m.self.Load().Member }

// State returns what is believed of one node. It is Unknown for a node that another
// incarnation has replaced.
func (m *Members) State(name, incarnation string) State {
	member, ok := m.table.get(name)
	if !ok || member.Incarnation != incarnation || m.foreign(member) {
		return Unknown
	}
	return member.State
}

// Sent returns how many packets this node has sent and how many streams it has opened
// since the start.
func (m *Members) Sent() (packets, streams uint64) {
	return m.transport.sentPackets.Load(), m.transport.openedStreams.Load()
}

// Watch returns a channel that holds a value when Nodes has changed since it was last
// received. Several changes may make one value. The caller calls stop at the end.
func (m *Members) Watch() (changes <-chan struct{}, stop func()) { return m.table.watch() }

// foreign tells whether a member belongs to another cluster of the same name.
func (m *Members) foreign(member Member) bool {
	own := m.self.Load().ClusterID
	return own != "" && member.ClusterID != "" && member.ClusterID != own
}

// UpdateMeta changes what this node tells the others. It does not wait until they
// have heard it.
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
	_ = m.list.UpdateNode(time.Nanosecond) // the error says that the others have not heard it yet
	return nil
}

// Leave tells the others that this node stops, so that they need not find out. It
// returns when they know or ctx ends. Close has to follow.
func (m *Members) Leave(ctx context.Context) error {
	if m.contest.open() {
		return nil // the name is another node's, which must not be taken for gone
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

// leave sends the news to each node, which takes no time, and then leaves by gossip:
// that reaches the nodes that could not be reached directly, and keeps the others'
// libraries from probing this node.
func (m *Members) leave(ctx context.Context) error {
	direct, cancel := context.WithTimeout(ctx, leaveTimeout/2)
	defer cancel()
	told := m.tellAll(direct, encodeLeave(m.self.Load()))
	timeout := leaveTimeout
	if told {
		timeout = 2 * m.cfg.Profile.GossipInterval
	}
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(deadline)), time.Nanosecond)
	}
	if err := m.list.Leave(timeout); err != nil && !told {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// tellAll sends a message to all other nodes and waits for it until ctx ends. It tells
// whether all have got it.
func (m *Members) tellAll(ctx context.Context, message []byte) bool {
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

// Close ends the gossip and closes the sockets. Without Leave the others take the
// node for crashed.
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

// report logs what operators want to know of the others.
func (m *Members) report() {
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
			m.log.Info("cluster node changed state", "state", member.State.String(),
				"node", member.Name, "address", member.Address, "incarnation", member.Incarnation)
		}
		select {
		case <-changes:
		case <-m.ctx.Done():
			return
		}
	}
}
