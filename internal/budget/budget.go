// Package budget bounds the memory that a node uses for the bodies of requests and
// responses: one limit for all of them, and a share of it per connection.
package budget

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A reservation belongs to a class by its size. The lower classes have reserves of their own, so that
// large bodies, which slow clients may hold for long, cannot keep small ones out.
const (
	Small  = 64 << 10
	Medium = 1 << 20
)

const (
	small class = iota
	medium
	large // has no reserve

	reserves = int(large)
)

type class int

func classOf(n int64) class {
	switch {
	case n <= Small:
		return small
	case n <= Medium:
		return medium
	}
	return large
}

// reserve: one part in reserve of a limit is available in addition to each class below large, and to
// responses.
const reserve = 8

// Bounds of RetryAfter.
const (
	minRetryAfter = time.Second
	maxRetryAfter = 30 * time.Second
)

// Budget is the memory of a node for bodies. Methods of budgets and accounts may be called
// concurrently.
type Budget struct {
	limit, share int64
	now          func() time.Time

	mu      sync.Mutex // covers the fields below, and the accounts
	usage   usage
	refused uint64
	full    time.Time // zero: not full, see Full
	waiting []*waiter // responses, the oldest first
}

// usage is the memory in use of a budget or an account.
type usage struct {
	all int64
	own [reserves]int64 // of which for these classes
}

func (u *usage) add(c class, n int64) {
	u.all += n
	if c < large {
		u.own[c] += n
	}
}

// common is the usage of a limit itself, without that of its reserves.
func (u *usage) common(limit int64) int64 {
	n := u.all
	for _, own := range u.own {
		n -= min(own, limit/reserve)
	}
	return n
}

// waiter is a response that waits for memory.
type waiter struct {
	account *Account
	bytes   int64
	granted chan struct{} // closed once the bytes are reserved
}

// New returns a budget of limit bytes, of which one connection may use share.
func New(limit, share int64) *Budget {
	return &Budget{limit: limit, share: min(share, limit), now: time.Now}
}

// Stats returns the bytes in use and the number of refused reservations.
func (b *Budget) Stats() (used int64, refused uint64) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.usage.all, b.refused
}

// Account is the usage of one connection. A nil account has no limits.
type Account struct {
	b *Budget

	usage usage     // covered by the budget's mutex
	full  time.Time // the same for the share; covered by the budget's mutex
}

// Account returns the account of another connection; nil for a nil budget.
func (b *Budget) Account() *Account {
	if b == nil {
		return nil
	}
	return &Account{b: b}
}

// Reserve reserves n bytes, until Return. It returns false if the connection or the node would exceed
// its limit.
func (a *Account) Reserve(n int64) bool { return a.Grow(0, n) }

// Allows reports whether n bytes are within the share of a connection.
func (a *Account) Allows(n int64) bool { return a == nil || n <= a.b.share }

// Grow changes a reservation of from bytes to one of to bytes. It returns false, without a
// change, if that exceeds a limit.
func (a *Account) Grow(from, to int64) bool {
	if a == nil {
		return true
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	if !a.takeLocked(from, to, false, false) {
		a.b.refused++
		return false
	}
	return true
}

// Return ends a reservation of n bytes by Reserve, Grow, ReserveResponse or AwaitResponse.
func (a *Account) Return(n int64) { a.free(classOf(n), n) }

// takeLocked changes a reservation. A response may exceed the limits by a part of them; with ownOnly, only the
// reserve of its class is available.
func (a *Account) takeLocked(from, to int64, response, ownOnly bool) bool {
	b := a.b
	node, own := b.usage, a.usage
	for _, u := range []*usage{&node, &own} {
		u.add(classOf(from), -from)
		u.add(classOf(to), to)
	}
	exceeds := func(after, before *usage, limit int64) bool {
		n := after.common(limit)
		if n <= before.common(limit) {
			return false
		}
		if response {
			limit += limit / reserve
		}
		return ownOnly || n > limit
	}
	nodeFull, shareFull := exceeds(&node, &b.usage, b.limit), exceeds(&own, &a.usage, b.share)
	if nodeFull && !ownOnly {
		b.markFullLocked()
	}
	if shareFull && !ownOnly && a.full.IsZero() {
		a.full = b.now()
	}
	if nodeFull || shareFull {
		return false
	}
	b.usage, a.usage = node, own
	return true
}

// ReserveResponse reserves n bytes for a response, until Return. A response may exceed the limits by
// a part of them, so that requests cannot keep responses out. If there is no room, or others wait for it,
// it returns false.
func (a *Account) ReserveResponse(n int64) bool {
	if a == nil || n == 0 {
		return true
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	return a.takeLocked(0, n, true, slices.ContainsFunc(a.b.waiting, (*waiter).blocksLocked))
}

// AwaitResponse is ReserveResponse, but waits for room. It returns false if ctx ends before.
func (a *Account) AwaitResponse(ctx context.Context, n int64) bool {
	if a == nil || n == 0 {
		return true
	}
	w := &waiter{account: a, bytes: n, granted: make(chan struct{})}
	a.b.mu.Lock()
	a.b.waiting = append(a.b.waiting, w)
	a.b.grantLocked()
	a.b.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-ctx.Done():
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	i := slices.Index(a.b.waiting, w)
	if i < 0 { // granted meanwhile
		return true
	}
	a.b.waiting = slices.Delete(a.b.waiting, i, i+1)
	a.b.refused++
	return false
}

// grantLocked reserves memory for the responses that wait, as far as there is room. One that does not
// fit keeps later ones waiting, see blocksLocked, unless these fit into the reserve of their class.
func (b *Budget) grantLocked() {
	blocked := false
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		if !w.account.takeLocked(0, w.bytes, true, blocked) {
			blocked = blocked || w.blocksLocked()
			return false
		}
		close(w.granted)
		return true
	})
}

// blocksLocked reports whether a waiting response waits for memory of the node, not only for the share of
// its own connection.
func (w *waiter) blocksLocked() bool {
	share := w.account.b.share
	return w.account.usage.common(share)+w.bytes <= share+share/reserve
}

func (b *Budget) markFullLocked() {
	if b.full.IsZero() {
		b.full = b.now()
	}
}

// Full reports whether the limit of the node or of the connection was exceeded, or a
// reservation refused because of it, and less than half of that limit has become free since.
func (a *Account) Full() bool {
	if a == nil {
		return false
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	return !a.b.full.IsZero() || !a.full.IsZero()
}

// RetryAfter returns how long to wait after a refused reservation: as long as the budget
// has been full (see Full), between 1 and 30 s.
func (a *Account) RetryAfter() time.Duration {
	if a == nil {
		return minRetryAfter
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	var since time.Duration
	for _, full := range []time.Time{a.b.full, a.full} {
		if !full.IsZero() {
			since = max(since, a.b.now().Sub(full))
		}
	}
	return min(max(since, minRetryAfter), maxRetryAfter)
}

// ReserveForNode reserves n bytes for a request of another node, until Release, or returns false. The
// connection of a node may use half the limit, regardless of others: a node with full
// memory must still be able to complete requests of other nodes.
func (a *Account) ReserveForNode(n int64) bool {
	if a == nil {
		return true
	}
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.usage.all > 0 && a.usage.all+n > b.limit/2 {
		b.refused++
		return false
	}
	a.addLocked(large, n)
	return true
}

func (a *Account) addLocked(c class, n int64) {
	a.b.usage.add(c, n)
	a.usage.add(c, n)
}

// Charge adds n bytes of memory that is already in use, regardless of the limits, until Release.
func (a *Account) Charge(n int64) {
	if a == nil {
		return
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	a.addLocked(large, n)
	if a.b.usage.common(a.b.limit) > a.b.limit {
		a.b.markFullLocked()
	}
}

// Release releases n bytes of Charge or ReserveForNode.
func (a *Account) Release(n int64) { a.free(large, n) }

func (a *Account) free(c class, n int64) {
	if a == nil || n == 0 {
		return
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	a.addLocked(c, -n)
	if a.b.usage.all <= a.b.limit/2 {
		a.b.full = time.Time{}
	}
	if a.usage.all <= a.b.share/2 {
		a.full = time.Time{}
	}
	if len(a.b.waiting) > 0 {
		a.b.grantLocked()
	}
}

type contextKey struct{}

// With returns a context for a connection with that account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// From returns the account of the connection of a request; nil if it has none.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(contextKey{}).(*Account)
	return a
}
