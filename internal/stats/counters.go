package stats

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxServices is the number of services that are counted separately. The others are counted
// together, under the name Other.
const (
	MaxServices = 200
	Other       = ""
)

// Counters count events since the start of the process. Counting costs the lookup of the service
// and atomic additions. The methods may be called concurrently, and on a nil Counters, which counts
// nothing.
type Counters struct {
	handlers       *Handlers // nil: none
	failedAttempts atomic.Uint64
	services       atomic.Pointer[map[string]*counts] // the map does not change
	other          counts

	mu sync.Mutex // serializes changes of services
}

// counts are the counters of one service.
type counts struct {
	started, succeeded, failed, cancelled, retries atomic.Uint64
	latencies                                      [Buckets]atomic.Uint64
}

// NewCounters returns counters that are zero. What they count is added to the metrics of
// handlers, too; nil: there are none.
func NewCounters(handlers *Handlers) *Counters {
	c := &Counters{handlers: handlers}
	c.services.Store(&map[string]*counts{})
	return c
}

// of returns the counters of a service.
func (c *Counters) of(service string) *counts {
	known := *c.services.Load()
	if s := known[service]; s != nil {
		return s
	}
	if len(known) >= MaxServices || service == Other {
		return &c.other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known = *c.services.Load()
	if s := known[service]; s != nil {
		return s
	}
	if len(known) >= MaxServices {
		return &c.other
	}
	grown := maps.Clone(known)
	s := new(counts)
	grown[strings.Clone(service)] = s // service may be part of a log entry
	c.services.Store(&grown)
	return s
}

// Services returns the services that are counted separately.
func (c *Counters) Services() []string { return slices.Collect(maps.Keys(*c.services.Load())) }

// forget removes the counters of a service, to make room for another one.
func (c *Counters) forget(service string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := maps.Clone(*c.services.Load())
	delete(left, service)
	c.services.Store(&left)
}

// Started counts the first attempt of an invocation.
func (c *Counters) Started(service string) {
	if c != nil {
		c.of(service).started.Add(1)
	}
}

// Ended counts the end of an invocation, and the time from when it was due to its end; negative
// if it was not due yet.
func (c *Counters) Ended(service, handler string, how End, took time.Duration) {
	if c == nil {
		return
	}
	c.handlers.Ended(service, handler, how, took)
	s := c.of(service)
	switch how {
	case EndSuccess:
		s.succeeded.Add(1)
	case EndFailure:
		s.failed.Add(1)
	case EndCancelled:
		s.cancelled.Add(1)
	}
	if took >= 0 {
		s.latencies[bucketOf(took)].Add(1)
	}
}

// Attempted counts an attempt that has ended, in a trace unless that is empty.
func (c *Counters) Attempted(service, handler string, how Outcome, took time.Duration, trace string) {
	if c != nil {
		c.handlers.Attempted(service, handler, how, took, trace)
	}
}

// AttemptFailed counts a failed attempt.
func (c *Counters) AttemptFailed(service string) {
	if c != nil {
		c.failedAttempts.Add(1)
		c.of(service).retries.Add(1)
	}
}

// FailedAttempts returns the number of failed attempts.
func (c *Counters) FailedAttempts() uint64 {
	if c == nil {
		return 0
	}
	return c.failedAttempts.Load()
}

// Buckets is the number of buckets of latencies. Their bounds double with every second bucket;
// the first ends at half a millisecond, and the last begins at about an hour.
const Buckets = 48

// bounds are the upper bounds of all buckets but the last.
var bounds = func() (list [Buckets - 1]time.Duration) {
	for i := range list {
		list[i] = time.Duration(float64(time.Millisecond) * math.Pow(2, float64(i)/2-1))
	}
	return list
}()

// bucketOf returns the bucket of a latency.
func bucketOf(d time.Duration) int {
	low, high := 0, len(bounds)
	for low < high {
		middle := (low + high) / 2
		if d <= bounds[middle] {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// Quantile returns the latency below which a share of all is, interpolated within its bucket;
// false if there are none.
func Quantile(latencies *[Buckets]uint64, share float64) (time.Duration, bool) {
	total := uint64(0)
	for _, n := range latencies {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	rank, below := share*float64(total), 0.0
	for i, n := range latencies {
		if below+float64(n) < rank || n == 0 {
			below += float64(n)
			continue
		}
		var lower time.Duration
		if i > 0 {
			lower = bounds[i-1]
		}
		upper := bounds[min(i, len(bounds)-1)]
		return lower + time.Duration((rank-below)/float64(n)*float64(upper-lower)), true
	}
	return bounds[len(bounds)-1], true
}
