package invoker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"platform/internal/ids"
	"platform/partition/machine"
)

// report notes and logs a failure; the same one again is not news. t.mu is held.
func (t *task) report(f *failure) {
	repeated := t.last != nil && t.last.Message == f.Message && t.last.ErrorCode == f.ErrorCode
	t.last = f
	level, fields := t.warning(repeated)
	t.s.log.Log(context.Background(), level, "attempt failed", append(fields, "failed_attempts", t.retry.total+1)...)
}

// reportEnd logs that there will be no further attempt; t.mu is held.
func (t *task) reportEnd(how machine.StepKind) {
	level, fields := t.warning(false)
	fields = append(fields, "failed_attempts", t.retry.total)
	if how == machine.StepFail {
		t.s.log.Log(context.Background(), level, "invocation failed with its last attempt", fields...)
	} else {
		t.s.log.Log(context.Background(), level, "invocation paused after its last attempt", fields...)
	}
}

// warning is how to log something about the last failure: quietly if it is not new
// or if there is too much of it.
func (t *task) warning(quiet bool) (slog.Level, []any) {
	level := slog.LevelDebug
	target := ""
	if t.inv != nil {
		target = t.inv.Target.String()
	}
	fields := []any{
		"invocation_id", t.id, "target", target, "deployment_id", t.deployed.Deployment,
		"code", t.last.ErrorCode, "err", clip(t.last.Message, loggedText),
	}
	if quiet {
		return level, fields
	}
	held, admitted := t.s.iv.muffler.admit(noise{t.deployed.Deployment, t.last.ErrorCode}, time.Now())
	if admitted {
		level = slog.LevelWarn
	}
	if held > 0 {
		fields = append(fields, "similar_not_shown", held)
	}
	return level, fields
}

// Warnings of one kind that are written in a while; the rest is counted.
const (
	noiseWindow = 10 * time.Second
	noiseLimit  = 10
	// maxNoise bounds the kinds that are remembered.
	maxNoise = 4096
)

// noise is what warnings have in common that come in crowds: an endpoint that is
// down fails every invocation on it.
type noise struct {
	deployment ids.Deployment
	code       string
}

// muffler keeps the log readable while an endpoint fails for everybody.
type muffler struct {
	mu    sync.Mutex // guards kinds
	kinds map[noise]*noiseCount
}

type noiseCount struct {
	began         time.Time
	written, held int
}

// admit reports whether a warning may be written, and if so how many of its kind
// were held back before it.
func (m *muffler) admit(kind noise, now time.Time) (held int, admitted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kinds == nil || len(m.kinds) >= maxNoise { // mostly of deployments that are gone
		m.kinds = map[noise]*noiseCount{}
	}
	c := m.kinds[kind]
	if c == nil {
		c = &noiseCount{began: now}
		m.kinds[kind] = c
	}
	if now.Sub(c.began) >= noiseWindow {
		c.began, c.written = now, 0
	}
	if c.written == noiseLimit {
		c.held++
		return 0, false
	}
	held, c.held = c.held, 0
	c.written++
	return held, true
}
