package query

import (
	"maps"
	"sync"
	"time"

	"platform/internal/access"
	"platform/internal/tokenbucket"
)

// RateError means that more queries are sent than the rate limit permits.
type RateError struct {
	After time.Duration // when to try again
	own   bool          // there is a token, for other clients
}

// Error implements error.
func (e *RateError) Error() string {
	if e.own {
		return "too many queries of this client; the rest of admin.query-engine.rate-limiting is for other clients"
	}
	return "too many queries (admin.query-engine.rate-limiting)"
}

// rateLimit bounds how many queries start. A client that has had a query admitted leaves an eighth of the
// capacity to clients that have not, until the bucket could have filled since.
type rateLimit struct {
	mu       sync.Mutex // covers the fields below
	bucket   tokenbucket.Bucket
	reserve  int                         // tokens for other clients
	memory   time.Duration               // how long a client counts as one that has had a query
	recent   map[access.Client]time.Time // when they last had one
	rejected uint64
}

const (
	// reserved is the part of the capacity, one in so many, that is left to other clients.
	reserved = 8
	// maxRecent bounds the clients that are remembered; those beyond it get no token of the reserve.
	maxRecent = 1000
)

func newRateLimit(r tokenbucket.Rate) *rateLimit {
	l := &rateLimit{bucket: tokenbucket.New(r), recent: map[access.Client]time.Time{}}
	if r.Capacity > 1 {
		l.reserve = max(r.Capacity/reserved, 1)
	}
	if r.Limited() {
		l.memory = time.Duration(float64(r.Period) / float64(r.Count) * float64(r.Capacity))
	}
	return l
}

// admit takes a token for a query of a client.
func (l *rateLimit) admit(client access.Client, now time.Time) error {
	if !l.bucket.Limited() || client == "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	need := 1
	if !l.newcomer(client, now) {
		need += l.reserve
	}
	if at := l.bucket.When(now, need); at.After(now) {
		l.rejected++
		return &RateError{After: at.Sub(now), own: l.bucket.Has(now)}
	}
	l.bucket.Take(now)
	if _, known := l.recent[client]; known || len(l.recent) < maxRecent {
		l.recent[client] = now
	}
	return nil
}

// newcomer reports whether a client has had no query for a while.
func (l *rateLimit) newcomer(client access.Client, now time.Time) bool {
	if last, known := l.recent[client]; known {
		return now.Sub(last) >= l.memory
	}
	if len(l.recent) >= maxRecent {
		maps.DeleteFunc(l.recent, func(_ access.Client, last time.Time) bool { return now.Sub(last) >= l.memory })
	}
	return len(l.recent) < maxRecent
}

// rateLimited returns how many queries were rejected so far.
func (l *rateLimit) rateLimited() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rejected
}
