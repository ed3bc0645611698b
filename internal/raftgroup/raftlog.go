package raftgroup

import (
	"context"
	"io"
	"log"
	"log/slog"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"platform/internal/logsample"
)

// raftLogger forwards Raft's log to slog. Messages below warning level, each step of
// elections and snapshots, become debug messages; the group logs the important events
// itself. Messages that Raft repeats while a peer is unreachable are sampled.
type raftLogger struct {
	log     *slog.Logger
	name    string
	args    []any
	sampler *logsample.Sampler[string]

	stopping func() bool // see TransportConfig.Stopping
}

// raftLevels lowers the levels of messages that are less serious for operators than for
// Raft. Peers start, stop and join: while one is unreachable, that is not an error of this
// node. internal/cluster/membership warns of failed nodes, and a leader that loses its majority is
// a warning.
var raftLevels = map[string]slog.Level{
	"failed to appendEntries to":                                 slog.LevelInfo,
	"failed to heartbeat to":                                     slog.LevelInfo,
	"failed to contact":                                          slog.LevelInfo,
	"failed to make requestVote RPC":                             slog.LevelInfo,
	"peer has newer term, stopping replication":                  slog.LevelInfo, // also at each hand-over
	"new leader elected, stepping down":                          slog.LevelInfo,
	"Election timeout reached, restarting election":              slog.LevelInfo,
	"clearing log suffix":                                        slog.LevelInfo,
	"no known peers, aborting election":                          slog.LevelDebug, // until it is added to the group
	"not part of stable configuration, aborting election":        slog.LevelDebug,
	"rejecting vote request since node is not a voter":           slog.LevelDebug,
	"rejecting pre-vote request since node is not a voter":       slog.LevelDebug,
	"duplicate requestVote from":                                 slog.LevelDebug,
	"skipping application of old log":                            slog.LevelDebug,
	"failed to get previous log":                                 slog.LevelDebug,
	"previous log term mis-match":                                slog.LevelDebug,
	"appendEntries rejected, sending older logs":                 slog.LevelDebug,
	"rejecting vote request since we have a leader":              slog.LevelDebug,
	"rejecting pre-vote request since we have a leader":          slog.LevelDebug,
	"rejecting vote request since our last term is greater":      slog.LevelDebug,
	"rejecting vote request since our last index is greater":     slog.LevelDebug,
	"rejecting pre-vote request since our last term is greater":  slog.LevelDebug,
	"rejecting pre-vote request since our last index is greater": slog.LevelDebug,
}

// lossesOfOthers are warnings that follow from the loss of other nodes.
var lossesOfOthers = []string{"failed to contact quorum of nodes, stepping down", "heartbeat timeout reached, starting election"}

// samplePause is how long a message is not repeated, maxSampled how many messages are
// tracked.
const (
	samplePause = 30 * time.Second
	maxSampled  = 1000
)

func newLogSampler() *logsample.Sampler[string] {
	return logsample.New[string](1, samplePause, maxSampled)
}

var _ hclog.Logger = (*raftLogger)(nil)

func newRaftLogger(l *slog.Logger) *raftLogger {
	return &raftLogger{log: l.With("component", "raft"), sampler: newLogSampler()}
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	if level < hclog.Debug || level == hclog.Off {
		return
	}
	to := slog.LevelDebug
	switch milder, known := raftLevels[msg]; {
	case known:
		to = milder
	case slices.Contains(args, any(raft.ErrNothingNewToSnapshot)):
		to = slog.LevelDebug // of a replica that has applied no entry yet, such as a new one
	case slices.Contains(args, any(raft.ErrLeadershipTransferInProgress)):
		to = slog.LevelDebug // Group.Snapshot makes another attempt
	case msg == "heartbeat timeout reached, starting election" && slices.Contains(args, any(raft.ServerID(""))):
		to = slog.LevelInfo // without a leader since the start: all members have been started together
	case msg == "failed to get log" && slices.Contains(args, any(raft.ErrLogNotFound)):
		to = slog.LevelDebug // the entry was compacted: the follower, such as a new node, gets a snapshot
	case slices.Contains(lossesOfOthers, msg) && l.stopping != nil && l.stopping():
		to = slog.LevelInfo
	case level == hclog.Error:
		to = slog.LevelError
	case level == hclog.Warn:
		to = slog.LevelWarn
	}
	if !l.log.Enabled(context.Background(), to) {
		return
	}
	args = readable(args)
	if to == slog.LevelDebug {
		l.log.Debug(msg, args...) //nolint:sloglint // the library's own message
		return
	}
	skipped, due := l.sampler.Admit(msg, time.Now())
	if !due {
		return
	}
	if skipped > 0 {
		args = append(args[:len(args):len(args)], "repeated", skipped)
	}
	l.log.Log(context.Background(), to, msg, args...) //nolint:sloglint // the library's own message
}

// readable replaces the library's structures by their identifying fields.
func readable(args []any) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		if server, ok := arg.(raft.Server); ok {
			args[i] = string(server.ID)
		}
	}
	return args
}

func (l *raftLogger) Trace(string, ...any)          {}
func (l *raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *raftLogger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *raftLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLogger) IsTrace() bool { return false }
func (l *raftLogger) IsDebug() bool { return l.log.Enabled(context.Background(), slog.LevelDebug) }
func (l *raftLogger) IsInfo() bool  { return l.IsDebug() }
func (l *raftLogger) IsWarn() bool  { return true }
func (l *raftLogger) IsError() bool { return true }

func (l *raftLogger) ImpliedArgs() []any { return l.args }
func (l *raftLogger) Name() string       { return l.name }

func (l *raftLogger) With(args ...any) hclog.Logger {
	return &raftLogger{log: l.log.With(args...), sampler: l.sampler, stopping: l.stopping, name: l.name, args: append(l.args[:len(l.args):len(l.args)], args...)}
}

func (l *raftLogger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *raftLogger) ResetNamed(name string) hclog.Logger {
	return &raftLogger{log: l.log, sampler: l.sampler, stopping: l.stopping, name: name, args: l.args}
}

func (l *raftLogger) SetLevel(hclog.Level)  {}
func (l *raftLogger) GetLevel() hclog.Level { return hclog.Warn }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.log.Handler(), slog.LevelWarn)
}

func (l *raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(nil).Writer()
}
