// Package budget bounds the memory that a node holds for the bodies of requests and
// replies: one limit for all of them, and a share for each connection.
package budget

import (
	"context"
	"sync"
)

// Small is the size up to which a reservation may use the reserve of the budget, so that
// large bodies cannot keep small ones out.
const Small = 64 << 10

// reserve is the part of the limit, one in so many, that only small bodies get in addition.
const reserve = 4

// Budget is the memory of a node for bodies. Its methods and those of its accounts may be
// called concurrently.
type Budget struct {
	limit, share int64

	mu      sync.Mutex // guards the fields below, and the accounts
	used    int64
	refused uint64
}

// New returns a budget of limit bytes, of which one connection may have share.
func New(limit, share int64) *Budget { return &Budget{limit: limit, share: min(share, limit)} }

// Stats are the bytes in use and the reservations that were refused so far.
func (b *Budget) Stats() (used int64, refused uint64) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.refused
}

// Account is the part of a budget that one connection uses. A nil account is without
// limits.
type Account struct {
	b    *Budget
	held int64 // guarded by the budget's mutex
}

// Account returns the account of another connection; nil for a nil budget.
func (b *Budget) Account() *Account {
	if b == nil {
		return nil
	}
	return &Account{b: b}
}

// Reserve takes n bytes, or reports false if the connection or the node has no more.
func (a *Account) Reserve(n int64) bool { return a.Grow(0, n) }

// Grow makes a reservation of from bytes one of to bytes, or reports false.
func (a *Account) Grow(from, to int64) bool {
	if a == nil {
		return true
	}
	n := to - from
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	limit, share := b.limit, b.share
	if to <= Small {
		limit, share = limit+limit/reserve, share+share/reserve
	}
	if b.used+n > limit || a.held+n > share {
		b.refused++
		return false
	}
	b.used, a.held = b.used+n, a.held+n
	return true
}

// ReserveForNode takes n bytes for a request of another node, or reports false. The
// connection of a node may hold half the limit, whatever other connections use: a node
// whose memory is full must still be able to finish what others ask of it.
func (a *Account) ReserveForNode(n int64) bool {
	if a == nil {
		return true
	}
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.held > 0 && a.held+n > b.limit/2 {
		b.refused++
		return false
	}
	b.used, a.held = b.used+n, a.held+n
	return true
}

// Charge takes n bytes of memory that is in use already, whatever the limits are.
func (a *Account) Charge(n int64) {
	if a == nil {
		return
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	a.b.used, a.held = a.b.used+n, a.held+n
}

// Release gives n bytes back.
func (a *Account) Release(n int64) {
	if a == nil || n == 0 {
		return
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	a.b.used, a.held = a.b.used-n, a.held-n
}

type contextKey struct{}

// With returns a context of a connection with that account.
func With(ctx context.Context, a *Account) context.Context {
	return context.WithValue(ctx, contextKey{}, a)
}

// From returns the account of the connection that a request came on; nil if it has none.
func From(ctx context.Context) *Account {
	a, _ := ctx.Value(contextKey{}).(*Account)
	return a
}
