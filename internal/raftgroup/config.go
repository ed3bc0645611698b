package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/failpoint"
	"platform/internal/raftgroup/hardstate"
	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/retention"
	"platform/internal/raftgroup/watchdog"
)

// Profile contains the settings that trade speed of failover against tolerance of slow
// machines.
type Profile struct {
	// HeartbeatTimeout is how long a follower waits for its leader, ElectionTimeout how
	// long a candidate waits for votes. They bound the detection of failures that nothing
	// detects faster: a broken connection is detected immediately, a silent leader shortly
	// after its lease, see silence.go.
	HeartbeatTimeout time.Duration
	ElectionTimeout  time.Duration
	// LeaderLeaseTimeout is how long a leader continues without contact to a majority.
	LeaderLeaseTimeout time.Duration
	// SilenceMargin is how much longer than its lease a leader must have been silent before
	// the others replace it by agreement, see silence.go; 0: only Raft's timeouts apply.
	SilenceMargin time.Duration
	// CommitTimeout is the time after which an idle leader sends followers the commit
	// index.
	CommitTimeout time.Duration
	// MaxAppendEntries bounds the entries of one append and of one applied batch.
	MaxAppendEntries int
	// TrailingLogs and TrailingBytes bound what stays in the log after a snapshot, so that a
	// follower that was down can catch up without the whole state. Nothing stays in a group
	// of one.
	TrailingLogs  uint64
	TrailingBytes int64
	// LogCacheBytes bounds the memory of one group for recent entries.
	LogCacheBytes int
	// FailoverStep is the delay between the election attempts of the survivors after the
	// leader's process died: long enough for the first one to request votes, which it may
	// do only when its busy disk has stored its own. It costs time only if the first
	// survivor has failed, too; a survivor with a better log does not wait, see
	// Group.outbid.
	FailoverStep time.Duration
}

// Safe returns the settings for production: small machines, and heartbeats that wait behind
// a slow disk.
func Safe() Profile {
	return Profile{
		HeartbeatTimeout:   2 * time.Second,
		ElectionTimeout:    2 * time.Second,
		LeaderLeaseTimeout: 1500 * time.Millisecond,
		SilenceMargin:      200 * time.Millisecond,
		CommitTimeout:      500 * time.Millisecond,
		MaxAppendEntries:   256,
		TrailingLogs:       uint64(failpoint.Or(failpoint.TrailingLogs, 8192)),
		TrailingBytes:      64 << 20,
		LogCacheBytes:      1 << 20,
		FailoverStep:       500 * time.Millisecond,
	}
}

// Test returns short timeouts for tests.
func Test() Profile {
	p := Safe()
	half := 500 * time.Millisecond
	p.HeartbeatTimeout, p.ElectionTimeout, p.LeaderLeaseTimeout = half, half, half
	p.SilenceMargin = 0 // Raft's timeouts are as short
	p.CommitTimeout = 50 * time.Millisecond
	return p
}

// Config configures a Group. ID, LocalID, Storage, Transport and StateMachine are required.
type Config struct {
	// ID distinguishes the groups of a cluster on the wire.
	ID uint32
	// Name is used in logs and errors; "group-<ID>" when empty.
	Name string
	// LocalID is this replica's Raft server ID. A node that lost its data must use a new
	// one.
	LocalID raft.ServerID

	// Storage stores log, term and vote. The group does not close it.
	Storage logstore.Storage
	// HardState is the group's record in the node's hard-state file; nil: none is kept.
	HardState *hardstate.State
	// Transport is the node's transport; the group attaches itself.
	Transport *Transport
	// StateMachine applies the log.
	StateMachine StateMachine

	// Profile is Safe() when zero.
	Profile Profile
	// Voters is the first configuration. It is used only if the storage is empty; leave it
	// empty on a replica that is added to a running group.
	Voters []raft.Server

	// Lead runs while this replica leads. It is called when everything committed by
	// previous leaders has been applied here; ctx ends before anything else happens when
	// leadership is lost or the group shuts down. It is never called again before it has
	// returned. An error makes the replica give up leadership.
	Lead func(ctx context.Context, term uint64) error
	// HandOver is called before this replica tells a successor to start an election, while
	// it accepts no proposals. It ends what must not run concurrently with the successor's
	// duties; ctx ends when the transfer no longer waits for it. If the successor is not
	// elected, a Lead that has returned ErrNotLeader is called again. nil: there is nothing
	// to end.
	HandOver func(ctx context.Context)
	// OnLeaderChange is called at each change of the known leader; the zero Leader means
	// unknown. It is called from one goroutine and must not block.
	OnLeaderChange func(Leader)
	// OnFailed is called once if the group cannot continue.
	OnFailed func(error)

	// Watchdog watches the writes to the storage and the state machine's Apply; nil
	// means no watchdog.
	Watchdog *watchdog.Watchdog
	// Metrics of the group; nil means no metrics.
	Metrics *Metrics
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// Leader identifies the leader of a group.
type Leader struct {
	ID      raft.ServerID
	Address raft.ServerAddress
}

// withDefaults validates c and sets defaults.
func (c Config) withDefaults() (Config, error) {
	if c.Name == "" {
		c.Name = fmt.Sprintf("group-%d", c.ID)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("group", c.Name)
	if c.Profile == (Profile{}) {
		c.Profile = Safe()
	}
	switch {
	case c.LocalID == "":
		return c, errors.New("local ID is empty")
	case c.Storage == nil:
		return c, errors.New("no storage")
	case c.Transport == nil:
		return c, errors.New("no transport")
	case c.StateMachine == nil:
		return c, errors.New("no state machine")
	}
	return c, nil
}

// raftConfig returns the configuration of one Raft instance whose leadership changes are
// sent to notify.
func (c Config) raftConfig(notify chan<- bool) *raft.Config {
	rc := raft.DefaultConfig()
	rc.ProtocolVersion = raft.ProtocolVersionMax
	rc.LocalID = c.LocalID
	rc.HeartbeatTimeout = c.Profile.HeartbeatTimeout
	rc.ElectionTimeout = c.Profile.ElectionTimeout
	rc.LeaderLeaseTimeout = c.Profile.LeaderLeaseTimeout
	rc.CommitTimeout = c.Profile.CommitTimeout
	rc.MaxAppendEntries = c.Profile.MaxAppendEntries
	rc.BatchApplyCh = true
	rc.ShutdownOnRemove = false
	rc.TrailingLogs = retention.MinTrailing // the rest is up to the storage, which asks its policy
	// Snapshots are taken only by Group.Snapshot.
	rc.SnapshotThreshold = math.MaxInt64
	rc.SnapshotInterval = 24 * time.Hour
	rc.NoSnapshotRestoreOnStart = true
	rc.NoLegacyTelemetry = true
	rc.PreVoteDisabled = false
	rc.NotifyCh = notify
	logger := newRaftLogger(c.Logger)
	logger.stopping = c.Transport.cfg.Stopping
	rc.Logger = logger
	return rc
}
