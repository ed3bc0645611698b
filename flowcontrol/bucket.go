package flowcontrol

import "time"

// Bucket is a token bucket, represented by the time at which it is full, in nanoseconds
// since 1970; a time not later than now means full. A token takes the rate's period divided
// by its count to return, and the bucket holds a whole period. When the rate changes, the
// bucket is at worst empty.
type Bucket int64

// interval returns the time after which a token returns.
func interval(r Rate) int64 { return max(int64(r.Period)/int64(r.Count), 1) }

// has reports whether there is a token. now is in milliseconds.
func (b Bucket) has(r Rate, now int64) bool { return b.next(r, now) <= now }

// next returns when there is a token, in milliseconds since 1970, rounded up.
func (b Bucket) next(r Rate, now int64) int64 {
	full := min(int64(b), now*nanos+int64(r.Period))
	return millisUp(full - int64(r.Count-1)*interval(r))
}

// take takes a token, which must exist.
func (b *Bucket) take(r Rate, now int64) {
	full := min(int64(*b), now*nanos+int64(r.Period))
	*b = Bucket(max(full, now*nanos) + interval(r))
}

// fullAt returns when the bucket is full, in milliseconds since 1970, rounded up.
func (b Bucket) fullAt() int64 { return millisUp(int64(b)) }

// nanos is the number of nanoseconds in a millisecond.
const nanos = int64(time.Millisecond)

func millisUp(t int64) int64 {
	millis := t / nanos
	if t%nanos > 0 {
		millis++
	}
	return millis
}
