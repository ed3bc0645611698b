package flowcontrol

import "time"

// Bucket is a token bucket: the time at which it is full again, in nanoseconds since
// 1970; what is not later than now is full. One number says it all: a token takes as
// long to come back as the rate's period divided by its count, and the bucket holds a
// whole period. When the rate changes it is at worst empty.
type Bucket int64

// interval is how long a token takes to come back.
func interval(r Rate) int64 { return max(int64(r.Period)/int64(r.Count), 1) }

// has reports whether there is a token. now is in milliseconds.
func (b Bucket) has(r Rate, now int64) bool { return b.next(r, now) <= now }

// next is when there is a token, in milliseconds since 1970, rounded up.
func (b Bucket) next(r Rate, now int64) int64 {
	full := min(int64(b), now*nanos+int64(r.Period))
	return millisUp(full - int64(r.Count-1)*interval(r))
}

// take takes a token that is there.
func (b *Bucket) take(r Rate, now int64) {
	full := min(int64(*b), now*nanos+int64(r.Period))
	*b = Bucket(max(full, now*nanos) + interval(r))
}

// fullAt is when it is full again, in milliseconds since 1970, rounded up.
func (b Bucket) fullAt() int64 { return millisUp(int64(b)) }

// nanos are the nanoseconds of a millisecond.
const nanos = int64(time.Millisecond)

func millisUp(t int64) int64 {
	millis := t / nanos
	if t%nanos > 0 {
		millis++
	}
	return millis
}
