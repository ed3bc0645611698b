package invoker

import (
	"context"
	"log/slog"
	"time"

	"platform/internal/ids"
	"platform/internal/stats"
	"platform/internal/tracing"
	"platform/partition/machine"
)

// reportLocked records and logs a failure; a repeated one is logged at debug level.
func (t *task) reportLocked(f *failure) {
	service := ""
	if t.inv != nil {
		service = t.inv.Target.Service
	}
	t.s.iv.cfg.Stats.AttemptFailed(service)
	repeated := t.repeatsLocked(f)
	t.setLastLocked(f)
	level, fields := t.warningLocked(repeated)
	t.s.log.Log(context.Background(), level, "attempt failed", append(fields, "failed_attempts", t.retry.total+1)...)
}

// reportEndLocked logs that there will be no further attempt.
func (t *task) reportEndLocked(how machine.StepKind) {
	level, fields := t.warningLocked(false)
	fields = append(fields, "failed_attempts", t.retry.total)
	if how == machine.StepFail {
		t.s.log.Log(context.Background(), level, "invocation failed with its last attempt", fields...)
	} else {
		t.s.log.Log(context.Background(), level, "invocation paused after its last attempt", fields...)
	}
}

// warningLocked returns the level and fields for logging the last failure: debug if it is
// repeated or sampled.
func (t *task) warningLocked(quiet bool) (slog.Level, []any) {
	level := slog.LevelDebug
	target := ""
	if t.inv != nil {
		target = t.inv.Target.String()
	}
	fields := []any{
		"invocation_id", t.id, "target", target, "deployment_id", t.deployed.Deployment,
		"code", t.last.ErrorCode, "err", clip(t.last.Message, loggedText),
	}
	fields = t.tracedLocked(fields)
	if quiet {
		return level, fields
	}
	held, admitted := t.s.iv.sampler.Admit(sampleKey{t.deployed.Deployment, t.last.ErrorCode}, time.Now())
	if admitted {
		level = slog.LevelWarn
	}
	if held > 0 {
		fields = append(fields, "similar_not_shown", held)
	}
	return level, fields
}

// reportStartLocked logs the start of an attempt.
func (a *attempt) reportStartLocked() {
	if a.s.log.Enabled(context.Background(), slog.LevelDebug) {
		a.s.log.Debug("attempt started", append(a.aboutLocked(), "journal_entries", a.t.inv.Length, "failed_attempts", a.t.retry.total)...)
	}
}

// reportOutcomeLocked logs how an attempt ended.
func (a *attempt) reportOutcomeLocked(how stats.Outcome, now time.Time) {
	if a.t.inv != nil && a.s.log.Enabled(context.Background(), slog.LevelDebug) {
		a.s.log.Debug("attempt ended", append(a.aboutLocked(), "outcome", how.String(), "duration", now.Sub(a.t.started))...)
	}
}

// aboutLocked returns the fields of log records about an attempt.
func (a *attempt) aboutLocked() []any {
	t := a.t
	return t.tracedLocked([]any{"invocation_id", t.id, "target", t.inv.Target.String(), "deployment_id", t.deployed.Deployment})
}

// tracedLocked adds the trace of the invocation to the fields of a log record.
func (t *task) tracedLocked(fields []any) []any {
	if t.inv == nil {
		return fields
	}
	if id := tracing.TraceID(t.inv.Trace.Parent); id != "" {
		fields = append(fields, "trace_id", id)
	}
	return fields
}

// Number of warnings of one kind that are logged per window; the rest is counted.
const (
	sampleWindow = 10 * time.Second
	sampleLimit  = 10
	// maxSamples bounds the kinds that are counted; most are of deployments that are gone.
	maxSamples = 4096
)

// sampleKey groups similar warnings: an endpoint that is down fails every invocation on it.
type sampleKey struct {
	deployment ids.Deployment
	code       string
}
