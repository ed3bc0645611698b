package raftgroup

import (
	"context"
	"io"
	"log"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// raftLogger sends what Raft logs to slog. What it says below warnings, each step
// of elections and snapshots, is for whoever debugs; the group reports the rest
// itself. What Raft says again and again while a peer is away is said once in a while.
type raftLogger struct {
	log  *slog.Logger
	name string
	args []any
	said *repeats
}

// raftLevels are the levels of messages that Raft takes more seriously than an
// operator needs to. Peers start, stop and join: while one does it cannot be reached,
// which is no error of this node. internal/membership warns of nodes that fail, and a
// leader that loses its majority is a warning.
var raftLevels = map[string]slog.Level{
	"failed to appendEntries to":                                 slog.LevelInfo,
	"failed to heartbeat to":                                     slog.LevelInfo,
	"failed to contact":                                          slog.LevelInfo,
	"failed to make requestVote RPC":                             slog.LevelInfo,
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

// repeatPause is how long a message is not repeated, maxRepeats how many are known.
const (
	repeatPause = 30 * time.Second
	maxRepeats  = 1000
)

// repeats knows when each message was last logged.
type repeats struct {
	mu   sync.Mutex // covers last
	last map[string]*repeat
}

func newRepeats() *repeats { return &repeats{last: map[string]*repeat{}} }

type repeat struct {
	at      time.Time
	skipped int
}

// due reports whether to log a message now, and how often it was left out since.
func (r *repeats) due(msg string, now time.Time) (skipped int, due bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.last[msg]
	if known == nil {
		if len(r.last) > maxRepeats { // whoever sends us so many that differ gets them logged
			clear(r.last)
		}
		known = &repeat{}
		r.last[msg] = known
	}
	if !known.at.IsZero() && now.Sub(known.at) < repeatPause {
		known.skipped++
		return 0, false
	}
	skipped, known.at, known.skipped = known.skipped, now, 0
	return skipped, true
}

var _ hclog.Logger = (*raftLogger)(nil)

func newRaftLogger(l *slog.Logger) *raftLogger {
	return &raftLogger{log: l.With("component", "raft"), said: newRepeats()}
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	if level < hclog.Debug || level == hclog.Off {
		return
	}
	to := slog.LevelDebug
	switch milder, known := raftLevels[msg]; {
	case known:
		to = milder
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
	skipped, due := l.said.due(msg, time.Now())
	if !due {
		return
	}
	if skipped > 0 {
		args = append(args[:len(args):len(args)], "repeated", skipped)
	}
	l.log.Log(context.Background(), to, msg, args...) //nolint:sloglint // the library's own message
}

// readable replaces the library's structures by what identifies them.
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
	return &raftLogger{log: l.log.With(args...), said: l.said, name: l.name, args: append(l.args[:len(l.args):len(l.args)], args...)}
}

func (l *raftLogger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *raftLogger) ResetNamed(name string) hclog.Logger {
	return &raftLogger{log: l.log, said: l.said, name: name, args: l.args}
}

func (l *raftLogger) SetLevel(hclog.Level)  {}
func (l *raftLogger) GetLevel() hclog.Level { return hclog.Warn }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.log.Handler(), slog.LevelWarn)
}

func (l *raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(nil).Writer()
}
