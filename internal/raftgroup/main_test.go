package raftgroup

import (
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"platform/internal/nodelink"
	"platform/internal/raftgroup/logstore"
	"platform/test/harness/ports"
)

func TestMain(m *testing.M) {
	if os.Getenv(nodeProcessEnv) != "" {
		os.Exit(runNodeProcess())
	}
	goleak.VerifyTestMain(m)
}

// testLogger drops what is below errors unless tests run verbosely.
func testLogger(tb testing.TB) *slog.Logger {
	level := slog.LevelError + 1
	if os.Getenv("RAFTGROUP_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: level}))
}

// Names under which Raft stores these values.
var (
	keyCurrentTerm = []byte("CurrentTerm")
	keyVoteTerm    = []byte("LastVoteTerm")
	keyVote        = []byte("LastVoteCand")
)

// testNode is one node in the test's process: a log database and a transport
// with a real listener.
type testNode struct {
	tb        testing.TB
	dir       string
	db        *logstore.DB
	transport *Transport
	server    *grpc.Server
	served    chan struct{}
}

// startNode starts a node on dir. An empty address takes a free port.
func startNode(tb testing.TB, dir, address string, dial ...grpc.DialOption) *testNode {
	tb.Helper()
	if dial != nil {
		dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	return startNodeWith(tb, dir, address, TransportConfig{DialOptions: dial})
}

// startNodeWith is startNode with a configuration, to which it adds the identity of the node.
func startNodeWith(tb testing.TB, dir, address string, cfg TransportConfig) *testNode {
	tb.Helper()
	if address == "" {
		address = ports.Address(tb) // it may be started again
	}
	lis, err := net.Listen("tcp", address)
	require.NoError(tb, err)
	cfg.ClusterID, cfg.NodeID, cfg.Address = "test", lis.Addr().String(), raft.ServerAddress(lis.Addr().String())
	cfg.Logger = testLogger(tb)
	transport, err := NewTransport(cfg)
	require.NoError(tb, err)
	db, err := logstore.Open(dir, logstore.Options{Logger: testLogger(tb)})
	require.NoError(tb, err)
	n := &testNode{tb: tb, dir: dir, db: db, transport: transport, server: grpc.NewServer(nodelink.ServerOptions()...), served: make(chan struct{})}
	transport.Register(n.server)
	go func() {
		defer close(n.served)
		_ = n.server.Serve(lis)
	}()
	return n
}

func (n *testNode) address() raft.ServerAddress { return n.transport.cfg.Address }

func (n *testNode) stop() {
	require.NoError(n.tb, n.transport.Close())
	n.server.Stop()
	<-n.served
	require.NoError(n.tb, n.db.Close())
}

// whileClosed calls f with the directory of the log database while that is closed. Storages of
// it that were opened before must not be used afterwards.
func (n *testNode) whileClosed(f func(dir string)) {
	require.NoError(n.tb, n.db.Close())
	f(n.dir)
	var err error
	n.db, err = logstore.Open(n.dir, logstore.Options{Logger: testLogger(n.tb)})
	require.NoError(n.tb, err)
}

// config returns the configuration of one replica on n.
func (n *testNode) config(group uint32, sm StateMachine, voters ...raft.Server) Config {
	storage, err := n.db.Storage(group)
	require.NoError(n.tb, err)
	return Config{
		ID: group, LocalID: raft.ServerID(n.address()), Storage: storage, Transport: n.transport,
		StateMachine: sm, Profile: Test(), Voters: voters, Logger: testLogger(n.tb),
	}
}

func (n *testNode) voter() raft.Server {
	return raft.Server{ID: raft.ServerID(n.address()), Address: n.address()}
}

func memJournal(tb testing.TB) *journal {
	j, err := openJournal("state", vfs.NewMem())
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, j.db.Close()) })
	return j
}

func waitLeader(tb testing.TB, groups ...*Group) *Group {
	tb.Helper()
	var leader *Group
	require.Eventually(tb, func() bool {
		for _, g := range groups {
			if g.IsLeader() {
				leader = g
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	return leader
}
