package metadata

import (
	"time"

	"platform/internal/target"
)

// Defaults are the server's values for options that services and handlers do not set, and
// its bounds for those that they do. They come from the configuration and may change while
// the server runs.
type Defaults struct {
	InactivityTimeout time.Duration
	AbortTimeout      time.Duration

	JournalRetention     time.Duration
	IdempotencyRetention time.Duration
	WorkflowRetention    time.Duration

	// Upper bounds of the retentions above; nil means unbounded.
	MaxJournalRetention     *time.Duration
	MaxIdempotencyRetention *time.Duration
	MaxWorkflowRetention    *time.Duration

	Retry RetryPolicy
	// MaxRetryAttempts bounds RetryPolicy.MaxAttempts; 0 means unbounded.
	MaxRetryAttempts int
}

// RetryPolicy is a complete retry policy.
type RetryPolicy struct {
	InitialInterval time.Duration
	MaxInterval     time.Duration
	Factor          float64
	MaxAttempts     int // includes the first attempt; 0: unlimited
	OnMaxAttempts   OnMaxAttempts
}

// StandardDefaults returns the values of an unconfigured server.
func StandardDefaults() Defaults {
	const day = 24 * time.Hour
	return Defaults{
		InactivityTimeout:    time.Minute,
		AbortTimeout:         10 * time.Minute,
		JournalRetention:     day,
		IdempotencyRetention: day,
		WorkflowRetention:    day,
		Retry: RetryPolicy{
			InitialInterval: 500 * time.Millisecond,
			MaxInterval:     time.Minute,
			Factor:          2,
			MaxAttempts:     70,
			OnMaxAttempts:   Pause,
		},
	}
}

// EffectiveOptions are the merged options of a handler, its service and the server.
type EffectiveOptions struct {
	InactivityTimeout    time.Duration
	AbortTimeout         time.Duration
	JournalRetention     time.Duration
	IdempotencyRetention time.Duration
	WorkflowRetention    time.Duration // of a run handler's result
	EnableLazyState      bool
	Public               bool // may be called through the ingress
	Retry                RetryPolicy
}

// Effective merges the options of a handler with those of its service and the server: for
// each option the handler's value takes precedence over the service's, and that over the
// server's; the server's bounds apply to all. A nil handler yields the options for handlers
// without options. It is cheap enough for every call.
func Effective(h *Handler, s *Service, d *Defaults) EffectiveOptions {
	var own Options
	if h != nil {
		own = h.Options
	}
	all := &s.Options
	return EffectiveOptions{
		InactivityTimeout:    first(d.InactivityTimeout, own.InactivityTimeout, all.InactivityTimeout),
		AbortTimeout:         first(d.AbortTimeout, own.AbortTimeout, all.AbortTimeout),
		JournalRetention:     atMost(d.MaxJournalRetention, first(d.JournalRetention, own.JournalRetention, all.JournalRetention)),
		IdempotencyRetention: atMost(d.MaxIdempotencyRetention, first(d.IdempotencyRetention, own.IdempotencyRetention, all.IdempotencyRetention)),
		WorkflowRetention:    atMost(d.MaxWorkflowRetention, first(d.WorkflowRetention, own.WorkflowRetention, all.WorkflowRetention)),
		EnableLazyState:      first(false, own.EnableLazyState, all.EnableLazyState),
		Public:               first(true, all.Public) && first(true, own.Public),
		Retry:                effectiveRetry(&own.Retry, &all.Retry, d),
	}
}

func effectiveRetry(own, all *RetryOptions, d *Defaults) RetryPolicy {
	r := RetryPolicy{
		InitialInterval: first(d.Retry.InitialInterval, own.InitialInterval, all.InitialInterval),
		MaxInterval:     first(d.Retry.MaxInterval, own.MaxInterval, all.MaxInterval),
		Factor:          first(d.Retry.Factor, own.Factor, all.Factor),
		MaxAttempts:     d.Retry.MaxAttempts,
		OnMaxAttempts:   first(d.Retry.OnMaxAttempts, own.OnMaxAttempts, all.OnMaxAttempts),
	}
	if own.MaxAttempts != nil {
		r.MaxAttempts = attempts(*own.MaxAttempts)
	} else if all.MaxAttempts != nil {
		r.MaxAttempts = attempts(*all.MaxAttempts)
	}
	if limit := d.MaxRetryAttempts; limit > 0 && (r.MaxAttempts == 0 || r.MaxAttempts > limit) {
		r.MaxAttempts = limit
	}
	return r
}

// attempts converts an announced number of attempts: 0 means no retry, not unlimited.
func attempts(announced int) int {
	if announced == UnlimitedAttempts {
		return 0
	}
	return max(announced, 1)
}

// Retention returns how long the result and the journal of an invocation are kept after its
// end: a workflow run and a call with an idempotency key keep their result for the
// respective retention, and their journal no longer than that; any other invocation keeps
// both as long as its journal.
func (o *EffectiveOptions) Retention(t target.Type, idempotent bool) (completion, journal time.Duration) {
	completion = o.JournalRetention
	switch {
	case t == target.WorkflowRun:
		completion = o.WorkflowRetention
	case idempotent:
		completion = o.IdempotencyRetention
	}
	return completion, min(o.JournalRetention, completion)
}

// first returns the first announced value, or the default.
func first[T any](fallback T, announced ...*T) T {
	for _, v := range announced {
		if v != nil {
			return *v
		}
	}
	return fallback
}

func atMost(limit *time.Duration, d time.Duration) time.Duration {
	if limit != nil && d > *limit {
		return *limit
	}
	return d
}
