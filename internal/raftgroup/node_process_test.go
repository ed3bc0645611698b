package raftgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"platform/internal/nodelink"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
)

// nodeProcessEnv makes the test binary run as a node instead; its value is a
// nodeProcessConfig.
const nodeProcessEnv = "RAFTGROUP_TEST_NODE"

type nodeProcessConfig struct {
	Dir     string   // of this node
	Index   int      // of this node in Raft
	Raft    []string // addresses of all nodes
	Control string   // address of this node's control server
	Groups  int
}

// nodeDump is what the checker reads of one replica.
type nodeDump struct {
	Leader    string
	At        Position
	Hash      uint32
	Imports   int
	Snapshots uint64
	Commands  []string
}

// runNodeProcess runs a node until its standard input ends.
func runNodeProcess() int {
	var cfg nodeProcessConfig
	if err := json.Unmarshal([]byte(os.Getenv(nodeProcessEnv)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := serveNode(cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// replica is one group of a node process.
type replica struct {
	group    *Group
	journal  *journal
	proposer *Proposer[uint64]
}

func serveNode(cfg nodeProcessConfig) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", cfg.Index)
	slog.SetDefault(log)
	lis, err := net.Listen("tcp", cfg.Raft[cfg.Index])
	if err != nil {
		return err
	}
	transport, err := NewTransport(TransportConfig{ClusterID: "process", NodeID: strconv.Itoa(cfg.Index), Address: raft.ServerAddress(cfg.Raft[cfg.Index])})
	if err != nil {
		return err
	}
	server := grpc.NewServer(nodelink.ServerOptions()...)
	transport.Register(server)
	go func() { _ = server.Serve(lis) }()
	db, err := logstore.Open(filepath.Join(cfg.Dir, "log"), logstore.Options{})
	if err != nil {
		return err
	}
	var voters []raft.Server
	for i, addr := range cfg.Raft {
		voters = append(voters, raft.Server{ID: raft.ServerID(strconv.Itoa(i)), Address: raft.ServerAddress(addr)})
	}
	dog := watchdog.New(watchdog.Config{})
	var wg sync.WaitGroup
	replicas := make([]*replica, cfg.Groups)
	for id := range cfg.Groups {
		r := &replica{}
		replicas[id] = r
		if r.journal, err = openJournal(filepath.Join(cfg.Dir, fmt.Sprint("state-", id)), vfs.Default); err != nil {
			return err
		}
		storage, err := db.Storage(uint32(id))
		if err != nil {
			return err
		}
		profile := Safe()
		profile.TrailingLogs = 100
		r.group, err = Open(Config{
			ID: uint32(id), LocalID: voters[cfg.Index].ID, Storage: storage, Transport: transport,
			StateMachine: r.journal, Profile: profile, Voters: voters, Watchdog: dog,
		})
		if err != nil {
			return err
		}
		if r.proposer, err = NewProposer[uint64](r.group, ProposerConfig{Seal: sealJournal}); err != nil {
			return err
		}
		wg.Go(func() { _ = r.proposer.Run(ctx) })
		wg.Go(func() { r.snapshots(ctx) })
	}
	control := &http.Server{Addr: cfg.Control, Handler: controlHandler(replicas)}
	go func() { _ = control.ListenAndServe() }()
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
	for _, r := range replicas {
		if err := r.group.Shutdown(ctx); err != nil {
			return err
		}
	}
	cancel()
	wg.Wait()
	return nil
}

// snapshots takes one every 200 entries.
func (r *replica) snapshots(ctx context.Context) {
	for last := r.group.fsm.applied.Load(); ; {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return
		}
		if now := r.group.fsm.applied.Load(); now >= last+200 {
			if err := r.group.Snapshot(ctx); err != nil {
				slog.Warn("snapshot", "err", err)
				continue
			}
			last = now
		}
	}
}

func controlHandler(replicas []*replica) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /propose/{group}", func(w http.ResponseWriter, req *http.Request) {
		r := pick(replicas, req)
		command, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(req.Context(), 10*time.Second)
		defer cancel()
		n, err := r.proposer.do(ctx, command)
		switch {
		case err == nil:
			fmt.Fprint(w, n)
		case Definite(err):
			http.Error(w, err.Error(), http.StatusConflict)
		case errors.Is(err, ErrUnknownOutcome):
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /dump/{group}", func(w http.ResponseWriter, req *http.Request) {
		r := pick(replicas, req)
		d := nodeDump{Leader: string(r.group.Leader().ID), At: r.journal.Applied(), Snapshots: r.group.Stats().SnapshotIndex}
		r.journal.mu.Lock()
		d.Hash, d.Imports = r.journal.hash, r.journal.imports
		r.journal.mu.Unlock()
		if req.URL.Query().Has("commands") {
			var err error
			if d.Commands, err = r.journal.commands(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(d)
	})
	return mux
}

func pick(replicas []*replica, req *http.Request) *replica {
	n, _ := strconv.Atoi(req.PathValue("group"))
	return replicas[n]
}
