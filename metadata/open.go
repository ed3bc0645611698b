package metadata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/keyring"
	"platform/internal/raftgroup"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
)

// GroupID is the number of the metadata's Raft group; partitions have others.
const GroupID = 0

// Config configures a Store. Dir, LocalID, Transport and one of Voters and Join are
// required.
type Config struct {
	// Dir contains the log and the state; it is created if missing.
	Dir string
	// LocalID is this replica's Raft server ID.
	LocalID raft.ServerID
	// Transport is the node's.
	Transport *raftgroup.Transport
	// Voters is the first configuration of a new group. It is used only if Dir is empty.
	Voters []raft.Server
	// Join makes a replica with an empty Dir wait until the leader of a running group adds
	// it. Until then it has no state and accepts no changes. All nodes except the creator
	// of the cluster set it at every start: one that stopped before it was added must not
	// create a separate group.
	Join bool
	// Forward forwards changes to the leader when this replica does not lead. Without it
	// they wait until this replica leads.
	Forward ForwardFunc
	// AwaitNodes is called with the log index of a change of the registry or the rules
	// before the change returns; nil if there are no other nodes.
	AwaitNodes AwaitNodesFunc
	// HardState is the record of the group's term and vote outside Dir; nil: none.
	HardState *hardstate.State
	// Profile is raftgroup.Safe() when zero.
	Profile raftgroup.Profile
	// Watchdog watches the log's disk; nil means no watchdog.
	Watchdog *watchdog.Watchdog
	// Metrics of the group; nil means no metrics.
	Metrics *raftgroup.Metrics
	// Ballast is the node's ballast file, if it has one.
	Ballast string
	// snapshotEvery is the number of entries after which the log is truncated; 4096 when 0.
	snapshotEvery uint64
	// OnFailed is called once if the replica cannot continue.
	OnFailed func(error)
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
	// Now returns the time of day, which becomes the time of new jobs, tokens and subscriptions; jobs
	// compare theirs with those of invocations. It is time.Now when nil.
	Now func() time.Time
	// Keys are the keys of this node for secrets; nil: secrets are stored as they are.
	Keys *keyring.Keyring
	// RoutingHeaders are headers of deployments that are not encrypted: see Registration.
	RoutingHeaders []string
	// NewID returns unique IDs that grow with time; ULIDs when nil.
	NewID func() [16]byte
}

// replica is what a Store owns and closes.
type replica struct {
	db      *database
	storage *logstore.BoltStorage
	group   *raftgroup.Group
	fsm     *fsm
	raftLog *raftLog
	log     *slog.Logger

	snapshotEvery uint64
}

const (
	// trailingLogs is the number of entries that are kept after a snapshot. Entries are few, and a
	// replica that misses more receives the state instead.
	trailingLogs         = 1024
	defaultSnapshotEvery = 4096
	// closeTimeout bounds Close.
	closeTimeout = 10 * time.Second
)

// Open starts this node's replica. The caller must also call Run; Close stops the replica.
func Open(cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if cfg.Join == (len(cfg.Voters) > 0) {
		return nil, errors.New("open metadata: a replica either has first voters or joins")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open metadata: %w", err)
	}
	routing := map[string]bool{}
	for _, name := range cfg.RoutingHeaders {
		routing[strings.ToLower(name)] = true
	}
	r := &replica{log: cfg.Logger, snapshotEvery: cfg.snapshotEvery}
	gate := newGate()
	if err := r.open(cfg, gate); err != nil {
		return nil, errors.Join(fmt.Errorf("open metadata: %w", err), r.closeFiles())
	}
	r.raftLog = &raftLog{
		group: r.group, gate: gate, fsm: r.fsm, local: cfg.LocalID, forward: cfg.Forward, committed: make(chan struct{}, 1),
	}
	return &Store{
		source:     r.fsm,
		log:        r.raftLog,
		now:        cfg.Now,
		newID:      cfg.NewID,
		awaitNodes: cfg.AwaitNodes,
		routing:    routing,
		replica:    r,
	}, nil
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = func() [16]byte { return ulid.Make() }
	}
	if c.snapshotEvery == 0 {
		c.snapshotEvery = defaultSnapshotEvery
	}
	if c.Profile == (raftgroup.Profile{}) {
		c.Profile = raftgroup.Safe()
	}
	c.Profile.TrailingLogs = trailingLogs
	return c
}

func (r *replica) open(cfg Config, gate *gate) (err error) {
	if r.db, err = openDatabase(filepath.Join(cfg.Dir, "state.db")); err != nil {
		return err
	}
	if r.fsm, err = newFSM(r.db); err != nil {
		return err
	}
	r.fsm.useKeys(cfg.Keys)
	r.storage, err = logstore.OpenBolt(filepath.Join(cfg.Dir, "log.db"),
		logstore.BoltOptions{Ballast: cfg.Ballast, MmapBytes: mmapBytes, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	r.group, err = raftgroup.Open(raftgroup.Config{
		ID: GroupID, Name: "metadata", LocalID: cfg.LocalID,
		Storage: r.storage, HardState: cfg.HardState, Transport: cfg.Transport, StateMachine: r.fsm,
		Profile: cfg.Profile, Voters: cfg.Voters, Lead: gate.lead, OnLeaderChange: gate.leaderChanged,
		OnFailed: cfg.OnFailed, Watchdog: cfg.Watchdog, Metrics: cfg.Metrics, Logger: cfg.Logger,
	})
	return err
}

// Run keeps the log short and, while this node leads, notifies followers of commits, until
// ctx ends.
func (s *Store) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.replica.raftLog.notifyCommits(ctx) })
	r := s.replica
	for {
		applied := r.fsm.changed.Next()
		stats := r.group.Stats()
		if stats.AppliedIndex >= stats.SnapshotIndex+r.snapshotEvery {
			if err := r.group.Snapshot(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("could not truncate the metadata log", "err", err)
			}
		}
		select {
		case <-applied:
		case <-r.group.Done():
			return r.group.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Collector returns the metrics of the log's file.
func (s *Store) Collector() prometheus.Collector { return s.replica.storage.Collector() }

// Group returns the Raft group, for its membership and statistics.
func (s *Store) Group() *raftgroup.Group { return s.replica.group }

// Close transfers leadership and stops the replica.
func (s *Store) Close() error { return s.close(s.replica.group.Shutdown) }

// Stop is Close without the transfer, for when no other node can take over.
func (s *Store) Stop() error { return s.close(s.replica.group.Stop) }

func (s *Store) close(stop func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(stop(ctx), s.replica.closeFiles())
}

func (r *replica) closeFiles() error {
	var errs error
	if r.storage != nil {
		errs = errors.Join(errs, r.storage.Close())
	}
	if r.db != nil {
		errs = errors.Join(errs, r.db.close())
	}
	return errs
}
