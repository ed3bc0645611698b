package invoker

import (
	"math"
	"math/rand/v2"
	"time"

	"platform/metadata"
	"platform/partition/machine"
)

// jitter is the maximum random share added to a delay, so that invocations that failed
// together are not retried together.
const jitter = 0.3

// minDelay is the shortest delay before a retry, even if the policy or the endpoint asks for less.
// Without it, an attempt that fails immediately would be retried in a tight loop.
const minDelay = 10 * time.Millisecond

// maxDelay is the longest delay of a policy; with the jitter, it does not overflow.
const maxDelay = time.Duration(1 << 62)

// retryState counts the failed attempts of a task. It lasts as long as the task, so suspending
// resets it. A new leader continues with what the record of the invocation counts.
type retryState struct {
	restored   bool   // what the record counts is included
	total      int    // failed attempts
	reported   int    // failed attempts that are part of some progress
	failures   int    // failed attempts that count against the policy
	sinceEntry uint32 // failed attempts since the last new command
}

// restore adds what the record counts, the first time that it is called.
func (r *retryState) restore(f machine.FailedAttempts) {
	if r.restored {
		return
	}
	r.restored = true
	r.total += int(f.Total)
	r.reported += int(f.Total)
	r.failures += int(f.Counted)
	r.sinceEntry += f.SinceCommand
}

// renew resets the policy; the counts for operators and the endpoint are kept.
func (r *retryState) renew() { r.failures = 0 }

// report returns the number of failed attempts since the last progress that reported them.
func (r *retryState) report() uint32 {
	n := r.total - r.reported
	r.reported = r.total
	return uint32(n)
}

// overdue reports whether so many failed attempts are unreported that the record should count them.
// The number of reports grows with the logarithm of that of attempts, and a new leader continues
// with at least seven eighths of them.
func (r *retryState) overdue() bool { return 8*(r.total-r.reported) > r.total }

// counts returns what the record is to count; zero until what it counts is known.
func (r *retryState) counts() machine.FailedAttempts {
	if !r.restored {
		return machine.FailedAttempts{}
	}
	return machine.FailedAttempts{Total: uint32(r.total), Counted: uint32(r.failures), SinceCommand: r.sinceEntry}
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
	delay := delayAfter(r.failures, p)
	return delay + time.Duration(rand.Float64()*jitter*float64(delay)), true
}

// delayAfter returns the delay of the policy after so many failures, before jitter.
func delayAfter(failures int, p *metadata.RetryPolicy) time.Duration {
	// As a float, since it may overflow a duration.
	grown := float64(max(p.InitialInterval, minDelay)) * math.Pow(max(p.Factor, 1), float64(failures-1))
	d := time.Duration(min(grown, float64(maxDelay)))
	if p.MaxInterval > 0 {
		d = min(d, p.MaxInterval)
	}
	return min(max(d, minDelay), maxDelay)
}
