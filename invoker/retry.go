package invoker

import (
	"math/rand/v2"
	"time"

	"platform/metadata"
)

// jitter is how much chance may add to a delay, as a share of it, so that
// invocations that failed together do not come back together.
const jitter = 0.3

// retryState counts the failed attempts of a task. It lives as long as the task:
// suspending or a new leader begin anew.
type retryState struct {
	total      int           // failed attempts
	reported   int           // those of them that are part of some progress
	failures   int           // those that count against the policy
	delay      time.Duration // the last of the policy, without jitter
	sinceEntry uint32        // failed attempts since the last new command
}

// renew begins the policy anew; what was counted for operators and the endpoint
// stays.
func (r *retryState) renew() { r.failures, r.delay = 0, 0 }

// report is how many attempts have failed that no progress has told of.
func (r *retryState) report() uint32 {
	n := r.total - r.reported
	r.reported = r.total
	return uint32(n)
}

// next takes note of a failure and says how long to wait before the next attempt,
// or that there is none.
func (r *retryState) next(f *failure, p *metadata.RetryPolicy) (time.Duration, bool) {
	r.total++
	if f.reached {
		r.sinceEntry++
	}
	switch {
	case f.behavior != retryByPolicy:
		return 0, false
	case f.nextDelay != nil: // does not count as one of the policy's
		return *f.nextDelay, true
	}
	r.failures++
	if p.MaxAttempts > 0 && r.failures >= p.MaxAttempts {
		return 0, false
	}
	r.delay = following(r.delay, r.failures, p)
	return r.delay + time.Duration(rand.Float64()*jitter*float64(r.delay)), true
}

// following is the delay after the given one, before jitter.
func following(last time.Duration, failures int, p *metadata.RetryPolicy) time.Duration {
	d := p.InitialInterval
	if failures > 1 {
		// As a number, since it may exceed what a duration can hold.
		grown := float64(last) * max(p.Factor, 1)
		d = time.Duration(min(grown, float64(1<<62)))
	}
	if p.MaxInterval > 0 {
		d = min(d, p.MaxInterval)
	}
	return max(d, 0)
}
