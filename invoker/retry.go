package invoker

import (
	"math/rand/v2"
	"time"

	"platform/metadata"
)

// jitter is the maximum random share added to a delay, so that invocations that failed
// together are not retried together.
const jitter = 0.3

// minDelay is the shortest delay before a retry, even if the policy or the endpoint asks for less.
// Without it, an attempt that fails immediately would be retried in a tight loop.
const minDelay = 10 * time.Millisecond

// maxDelay is the longest delay of a policy; with the jitter, it does not overflow.
const maxDelay = time.Duration(1 << 62)

// retryState counts the failed attempts of a task. It lasts as long as the task: suspending
// or a new leader reset it.
type retryState struct {
	total      int           // failed attempts
	reported   int           // failed attempts that are part of some progress
	failures   int           // failed attempts that count against the policy
	delay      time.Duration // the last delay of the policy, without jitter
	sinceEntry uint32        // failed attempts since the last new command
}

// renew resets the policy; the counts for operators and the endpoint are kept.
func (r *retryState) renew() { r.failures, r.delay = 0, 0 }

// report returns the number of failed attempts since the last progress that reported them.
func (r *retryState) report() uint32 {
	n := r.total - r.reported
	r.reported = r.total
	return uint32(n)
}

// next records a failure and returns the delay before the next attempt, or false if there
// is none.
func (r *retryState) next(f *failure, p *metadata.RetryPolicy) (time.Duration, bool) {
	r.total++
	if f.reached {
		r.sinceEntry++
	}
	switch {
	case f.behavior != retryByPolicy:
		return 0, false
	case f.nextDelay != nil: // does not count against the policy
		return max(*f.nextDelay, minDelay), true
	}
	r.failures++
	if p.MaxAttempts > 0 && r.failures >= p.MaxAttempts {
		return 0, false
	}
	r.delay = following(r.delay, r.failures, p)
	return r.delay + time.Duration(rand.Float64()*jitter*float64(r.delay)), true
}

// following returns the delay after the given one, before jitter.
func following(last time.Duration, failures int, p *metadata.RetryPolicy) time.Duration {
	d := p.InitialInterval
	if failures > 1 {
		// As a float, since it may overflow a duration.
		grown := float64(last) * max(p.Factor, 1)
		d = time.Duration(min(grown, float64(maxDelay)))
	}
	if p.MaxInterval > 0 {
		d = min(d, p.MaxInterval)
	}
	return min(max(d, minDelay), maxDelay)
}
