package fabric

import (
	"context"
	"iter"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"platform/internal/ids"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/test/harness/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// fake is a replica with configurable behavior.
type fake struct {
	mu       sync.Mutex
	leading  bool
	leader   raftgroup.Leader
	changed  chan struct{}
	accepted int // number of requests not rejected

	moment  machine.Moment
	invoke  func(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error)
	call    func(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error)
	await   func(ctx context.Context, id ids.Invocation) (partition.Ending, error)
	operate func(ctx context.Context, c machine.Command) (machine.Outcome, error)
	deliver func(ctx context.Context, d *machine.Deliver) error
	ingest  func(ctx context.Context, c *machine.Ingest) (machine.Outcome, error)
	find    func(ctx context.Context, id ids.Invocation) (*machine.Invocation, error)
	inspect func(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error)
	records func(ctx context.Context, completed bool) iter.Seq2[partition.Record, error]
	state   func(ctx context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error)
	scan    func(ctx context.Context, s *partition.Scan) (partition.Page, error)
	list    func(ctx context.Context, q *partition.List) (partition.Listed, error)
}

func newFake(leading bool) *fake { return &fake{leading: leading, changed: make(chan struct{})} }

// set changes the leader.
func (f *fake) set(leading bool, leader raftgroup.Leader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leading, f.leader = leading, leader
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Leading() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leading
}

func (f *fake) Leader() raftgroup.Leader {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leader
}

func (f *fake) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fake) Moment() machine.Moment { return f.moment }

func (f *fake) Backlog() (commands int, bulk bool) { return 0, false }

func (f *fake) checkLeader() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.leading {
		return partition.ErrNotLeader
	}
	f.accepted++
	return nil
}

func (f *fake) acceptedRequests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.accepted
}

func (f *fake) Invoke(ctx context.Context, inv *machine.Invoke) (machine.Outcome, error) {
	if err := f.checkLeader(); err != nil {
		return machine.Outcome{}, err
	}
	return f.invoke(ctx, inv)
}

func (f *fake) Call(ctx context.Context, inv *machine.Invoke) (partition.Ending, machine.Outcome, error) {
	if err := f.checkLeader(); err != nil {
		return partition.Ending{}, machine.Outcome{}, err
	}
	return f.call(ctx, inv)
}

func (f *fake) Await(ctx context.Context, id ids.Invocation) (partition.Ending, error) {
	if err := f.checkLeader(); err != nil {
		return partition.Ending{}, err
	}
	return f.await(ctx, id)
}

func (f *fake) Operate(ctx context.Context, c machine.Operation) (machine.Outcome, error) {
	if err := f.checkLeader(); err != nil {
		return machine.Outcome{}, err
	}
	return f.operate(ctx, c)
}

func (f *fake) Deliver(ctx context.Context, d *machine.Deliver) error {
	if err := f.checkLeader(); err != nil {
		return err
	}
	return f.deliver(ctx, d)
}

func (f *fake) Ingest(ctx context.Context, c *machine.Ingest) (machine.Outcome, error) {
	if err := f.checkLeader(); err != nil {
		return machine.Outcome{}, err
	}
	return f.ingest(ctx, c)
}

func (f *fake) Find(ctx context.Context, id ids.Invocation) (*machine.Invocation, error) {
	if err := f.checkLeader(); err != nil {
		return nil, err
	}
	return f.find(ctx, id)
}

func (f *fake) Inspect(ctx context.Context, id ids.Invocation, withJournal bool) (partition.Record, []journal.Entry, error) {
	if err := f.checkLeader(); err != nil {
		return partition.Record{}, nil, err
	}
	return f.inspect(ctx, id, withJournal)
}

func (f *fake) Records(ctx context.Context, completed bool) iter.Seq2[partition.Record, error] {
	if err := f.checkLeader(); err != nil {
		return func(yield func(partition.Record, error) bool) { yield(partition.Record{}, err) }
	}
	return f.records(ctx, completed)
}

func (f *fake) State(ctx context.Context, o machine.Object, limit int) ([]machine.StateEntry, bool, error) {
	if err := f.checkLeader(); err != nil {
		return nil, false, err
	}
	return f.state(ctx, o, limit)
}

func (f *fake) Scan(ctx context.Context, s *partition.Scan) (partition.Page, error) {
	if err := f.checkLeader(); err != nil {
		return partition.Page{}, err
	}
	return f.scan(ctx, s)
}

func (f *fake) List(ctx context.Context, q *partition.List) (partition.Listed, error) {
	if err := f.checkLeader(); err != nil {
		return partition.Listed{}, err
	}
	return f.list(ctx, q)
}

// testNode serves replicas on a real port.
type testNode struct {
	address string
	server  *Server
	rpc     *grpc.Server
	stop    func() // may be called more than once
}

func startNode(tb testing.TB, cluster string, local func(uint32) Local) *testNode {
	tb.Helper()
	lis, err := net.Listen("tcp", ports.Address(tb)) // nothing else gets the port when it has stopped
	require.NoError(tb, err)
	return serveNode(tb, lis, cluster, local)
}

func serveNode(tb testing.TB, lis net.Listener, cluster string, local func(uint32) Local, more ...func(*grpc.Server, *Server)) *testNode {
	address := lis.Addr().String()
	n := &testNode{address: address, rpc: grpc.NewServer(nodelink.ServerOptions()...)}
	n.server = NewServer(ServerConfig{Self: identity(cluster, address), Local: local, Log: quiet})
	n.server.Register(n.rpc)
	for _, register := range more {
		register(n.rpc, n.server)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = n.rpc.Serve(lis) })
	n.stop = sync.OnceFunc(func() {
		n.server.Close()
		n.rpc.Stop()
		served.Wait()
	})
	tb.Cleanup(n.stop)
	return n
}

func identity(cluster, address string) Identity {
	return Identity{nodelink.Identity{ClusterID: func() string { return cluster }, Node: address, Address: address}, address}
}

func newClient(tb testing.TB, cluster string) *Client {
	c := NewClient(ClientConfig{Self: identity(cluster, "client"), Log: quiet})
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

// localReplica returns p for every partition.
func localReplica(p Local) func(uint32) Local { return func(uint32) Local { return p } }

// pair returns a client-side replica and the node that serves it.
func pair(tb testing.TB, p *fake) (*Remote, *testNode) {
	n := startNode(tb, "c", localReplica(p))
	return newClient(tb, "c").Remote(n.address, 0), n
}

func invocationID(n byte) ids.Invocation { return ids.NewInvocation(uint64(n)<<56, [16]byte{n, 1}) }

func invocation(n byte) *machine.Invoke {
	return &machine.Invoke{ID: invocationID(n), Target: machine.Target{Service: "S", Key: "k", Handler: "h", Type: target.ObjectExclusive}, Input: []byte("input"), Request: 7}
}
