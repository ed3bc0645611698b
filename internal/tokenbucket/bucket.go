// Package tokenbucket bounds how often something may happen. It has no clock: callers pass the time. Unlike a
// Limiter of golang.org/x/time/rate, a bucket tells when there will be a token without reserving it, and takes
// tokens back.
package tokenbucket

import "time"

// Rate is how often something may happen: Count times per Period, and up to Capacity times in one burst after
// a while in which nothing did. The zero Rate is no bound.
type Rate struct {
	Count    int
	Period   time.Duration
	Capacity int // at least 1, unless Count is 0
}

// Limited reports whether the rate is a bound.
func (r Rate) Limited() bool { return r.Count > 0 }

// interval is the time in which one token returns.
func (r Rate) interval() time.Duration { return max(r.Period/time.Duration(r.Count), 1) }

// Bucket has the tokens of a rate. It is full at first, and represented by the time at which it is full. Its methods
// may be called with the bucket of the zero Rate, which always has a token.
type Bucket struct {
	rate Rate
	full time.Time // not later than now means full
}

// New returns a full bucket.
func New(r Rate) Bucket { return Bucket{rate: r} }

// Limited reports whether the bucket bounds anything.
func (b *Bucket) Limited() bool { return b.rate.Limited() }

// Has reports whether there is a token.
func (b *Bucket) Has(now time.Time) bool { return !b.Next(now).After(now) }

// Full reports whether no token is missing.
func (b *Bucket) Full(now time.Time) bool { return !b.full.After(now) }

// Next returns when there is a token; a time not later than now if there is one.
func (b *Bucket) Next(now time.Time) time.Time { return b.When(now, 1) }

// When returns when there are n tokens, at most Capacity; a time not later than now if there are.
func (b *Bucket) When(now time.Time, n int) time.Time {
	if !b.Limited() {
		return now
	}
	return b.full.Add(-time.Duration(b.rate.Capacity-n) * b.rate.interval())
}

// Take takes a token, which must exist.
func (b *Bucket) Take(now time.Time) {
	if !b.Limited() {
		return
	}
	if b.full.Before(now) {
		b.full = now
	}
	b.full = b.full.Add(b.rate.interval())
}

// Return gives back a token that was taken.
func (b *Bucket) Return() {
	if b.Limited() {
		b.full = b.full.Add(-b.rate.interval())
	}
}
