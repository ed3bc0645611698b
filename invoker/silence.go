package invoker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// silentAttempts counts attempts whose endpoint has sent no response headers.
type silentAttempts struct {
	now   atomic.Int64
	total atomic.Uint64
}

// Silent returns how many open attempts have had no response headers for longer than
// Config.NoResponseWarning, and how many there have been in total.
func (iv *Invoker) Silent() (now int64, total uint64) {
	return iv.silentAttempts.now.Load(), iv.silentAttempts.total.Load()
}

// silentAtLocked returns when the attempt is marked unless response headers arrive; false if it
// will not be. Functions are never marked: they respond when they have ended.
func (a *attempt) silentAtLocked() (time.Time, bool) {
	warning := a.s.iv.cfg.NoResponseWarning
	if warning <= 0 || a.activity.responded || a.activity.overdue || a.plan.route.addr.Function != nil {
		return time.Time{}, false
	}
	return a.activity.requestedAt.Add(warning), true
}

// checkSilenceLocked marks the attempt if its response headers are overdue.
func (a *attempt) checkSilenceLocked(now time.Time) {
	at, ok := a.silentAtLocked()
	if !ok || at.After(now) {
		return
	}
	a.activity.overdue = true
	a.s.iv.silentAttempts.now.Add(1)
	a.s.iv.silentAttempts.total.Add(1)
	level, fields := a.t.sampledLocked(noResponse)
	fields = append(fields, "asked_at", a.activity.requestedAt, "abort_at", a.abortAtLocked())
	a.s.log.Log(context.Background(), level, "endpoint sent no response headers", fields...)
}

// noResponse separates these warnings from failures in the log sampler.
const noResponse = "no response"

// sampledLocked returns level and fields for logging something about the attempts of a task:
// debug level if there were too many warnings of that kind.
func (t *task) sampledLocked(kind string) (slog.Level, []any) {
	fields := []any{"invocation_id", t.id, "target", t.inv.Target.String(), "deployment_id", t.deployed.Deployment}
	fields = t.tracedLocked(fields)
	held, admitted := t.s.iv.sampler.Admit(sampleKey{t.deployed.Deployment, kind}, time.Now())
	if held > 0 {
		fields = append(fields, "similar_not_shown", held)
	}
	if !admitted {
		return slog.LevelDebug, fields
	}
	return slog.LevelWarn, fields
}

// endSilenceLocked removes the mark.
func (a *attempt) endSilenceLocked() {
	if a.activity.overdue {
		a.activity.overdue = false
		a.s.iv.silentAttempts.now.Add(-1)
	}
}
