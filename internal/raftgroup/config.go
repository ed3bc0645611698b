package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"platform/internal/failpoint"

	"github.com/hashicorp/raft"
)

// Profile holds the settings that trade speed of failover against tolerance of
// slow machines.
type Profile struct {
	// HeartbeatTimeout is how long a follower waits for its leader, ElectionTimeout
	// how long a candidate waits for votes. They bound what nothing faster notices: a
	// broken connection is noticed immediately, a silent leader a little after its
	// lease, see silence.go.
	HeartbeatTimeout time.Duration
	ElectionTimeout  time.Duration
	// LeaderLeaseTimeout is how long a leader goes on without hearing a majority.
	LeaderLeaseTimeout time.Duration
	// SilenceMargin is how much longer than its lease a leader must have been silent
	// before the others replace it by agreement, see silence.go; 0: Raft's own time-outs
	// are all there is.
	SilenceMargin time.Duration
	// CommitTimeout is when an idle leader tells followers the commit index.
	CommitTimeout time.Duration
	// MaxAppendEntries bounds the entries of one append and of one batch applied.
	MaxAppendEntries int
	// TrailingLogs is how many entries stay in the log after a snapshot, so that
	// a follower that was away can catch up without the whole state.
	TrailingLogs uint64
	// LogCacheBytes bounds the memory of one group for recent entries.
	LogCacheBytes int
	// FailoverStep is the delay between the survivors that stand for election
	// after the leader's process died: long enough for the first one to ask for votes,
	// which it may only when its busy disk has its own. It costs time only if the
	// first survivor is dead, too; a better log does not wait, see Group.outbid.
	FailoverStep time.Duration
}

// Safe returns the settings for production: small machines, heartbeats that wait
// behind a slow disk.
func Safe() Profile {
	return Profile{
		HeartbeatTimeout:   2 * time.Second,
		ElectionTimeout:    2 * time.Second,
		LeaderLeaseTimeout: 1500 * time.Millisecond,
		SilenceMargin:      200 * time.Millisecond,
		CommitTimeout:      500 * time.Millisecond,
		MaxAppendEntries:   256,
		TrailingLogs:       uint64(failpoint.Or(failpoint.TrailingLogs, 8192)),
		LogCacheBytes:      1 << 20,
		FailoverStep:       500 * time.Millisecond,
	}
}

// Fast returns the settings for machines with fast disks and networks.
func Fast() Profile {
	p := Safe()
	p.HeartbeatTimeout, p.ElectionTimeout, p.LeaderLeaseTimeout = time.Second, time.Second, time.Second
	return p
}

// Test returns short time-outs for tests.
func Test() Profile {
	p := Safe()
	half := 500 * time.Millisecond
	p.HeartbeatTimeout, p.ElectionTimeout, p.LeaderLeaseTimeout = half, half, half
	p.SilenceMargin = 0 // Raft's own time-outs are as short
	p.CommitTimeout = 50 * time.Millisecond
	return p
}

// Config says how to open a Group. ID, LocalID, Storage, Transport and
// StateMachine are required.
type Config struct {
	// ID distinguishes the groups of a cluster on the wire.
	ID uint32
	// Name is for logs and errors; "group-<ID>" when empty.
	Name string
	// LocalID is this replica's Raft server id. A node that lost its data must
	// take a new one.
	LocalID raft.ServerID

	// Storage holds log, term and vote. The group does not close it.
	Storage Storage
	// HardState is the group's record in the node's hard-state file; nil: none is kept.
	HardState *HardState
	// Transport is the node's transport; the group attaches itself.
	Transport *Transport
	// StateMachine is driven by the log.
	StateMachine StateMachine

	// Profile is Safe() when zero.
	Profile Profile
	// Voters is the first configuration. It is used only when the storage is
	// empty; leave it empty on a replica that is added to a running group.
	Voters []raft.Server

	// Lead runs while this replica leads. It is called when everything committed
	// by former leaders has been applied here; ctx ends first thing when
	// leadership is lost or the group shuts down. It is never called again
	// before it returned. An error makes the replica give leadership up.
	Lead func(ctx context.Context, term uint64) error
	// HandOver is called before this replica tells a successor to stand for election,
	// while it takes no proposals. It ends what must not go on beside the successor's
	// duties; ctx ends when the hand-over does not wait for it any longer. If the
	// successor is not elected, a Lead that has returned ErrNotLeader is called again.
	// nil: there is nothing to end.
	HandOver func(ctx context.Context)
	// OnLeaderChange is told about each change of the known leader; the zero
	// Leader means unknown. It is called from one goroutine and must be quick.
	OnLeaderChange func(Leader)
	// OnFailed is told once when the group cannot go on.
	OnFailed func(error)

	// Watchdog watches the writes to the storage and the state machine's Apply; nil
	// means no watchdog.
	Watchdog *Watchdog
	// Metrics count what the group does; nil means no metrics.
	Metrics *Metrics
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// Leader says who leads a group.
type Leader struct {
	ID      raft.ServerID
	Address raft.ServerAddress
}

// withDefaults checks c and fills what may be left out.
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
		return c, errors.New("local id is empty")
	case c.Storage == nil:
		return c, errors.New("no storage")
	case c.Transport == nil:
		return c, errors.New("no transport")
	case c.StateMachine == nil:
		return c, errors.New("no state machine")
	}
	return c, nil
}

// raftConfig translates c for one raft instance whose leadership changes go to
// notify.
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
	rc.TrailingLogs = c.Profile.TrailingLogs
	// Snapshots are taken by the owner's own schedule only: Group.Snapshot.
	rc.SnapshotThreshold = math.MaxInt64
	rc.SnapshotInterval = 24 * time.Hour
	rc.NoSnapshotRestoreOnStart = true
	rc.NoLegacyTelemetry = true
	rc.PreVoteDisabled = false
	rc.NotifyCh = notify
	rc.Logger = newRaftLogger(c.Logger)
	return rc
}
