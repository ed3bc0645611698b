package raftgroup

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger sends what Raft logs to slog. Below warnings it is silent: Raft's
// info messages describe each election and snapshot, which the group reports
// itself.
type raftLogger struct {
	log  *slog.Logger
	name string
	args []any
}

var _ hclog.Logger = (*raftLogger)(nil)

func newRaftLogger(l *slog.Logger) *raftLogger {
	return &raftLogger{log: l.With("component", "raft")}
}

func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	if level < hclog.Warn || level == hclog.Off {
		return
	}
	to := slog.LevelWarn
	if level == hclog.Error {
		to = slog.LevelError
	}
	l.log.Log(context.Background(), to, msg, args...) //nolint:sloglint // the library's own message
}

func (l *raftLogger) Trace(string, ...any)          {}
func (l *raftLogger) Debug(string, ...any)          {}
func (l *raftLogger) Info(string, ...any)           {}
func (l *raftLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *raftLogger) IsTrace() bool { return false }
func (l *raftLogger) IsDebug() bool { return false }
func (l *raftLogger) IsInfo() bool  { return false }
func (l *raftLogger) IsWarn() bool  { return true }
func (l *raftLogger) IsError() bool { return true }

func (l *raftLogger) ImpliedArgs() []any { return l.args }
func (l *raftLogger) Name() string       { return l.name }

func (l *raftLogger) With(args ...any) hclog.Logger {
	return &raftLogger{log: l.log.With(args...), name: l.name, args: append(l.args[:len(l.args):len(l.args)], args...)}
}

func (l *raftLogger) Named(name string) hclog.Logger {
	if l.name != "" {
		name = l.name + "." + name
	}
	return l.ResetNamed(name)
}

func (l *raftLogger) ResetNamed(name string) hclog.Logger {
	return &raftLogger{log: l.log, name: name, args: l.args}
}

func (l *raftLogger) SetLevel(hclog.Level)  {}
func (l *raftLogger) GetLevel() hclog.Level { return hclog.Warn }

func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.log.Handler(), slog.LevelWarn)
}

func (l *raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(nil).Writer()
}
