package ingress

import (
	"context"
	"net/http"

	"platform/internal/budget"
)

// reservation is the memory that a request has reserved from the account of its connection, for its body
// and response. It must be used by one goroutine only.
type reservation struct {
	account *budget.Account

	body     int64
	response int64
	charged  int64 // regardless of the limits
}

func newReservation(r *http.Request) *reservation {
	return &reservation{account: budget.From(r.Context())}
}

// growBody raises the reservation for the body to at least n bytes.
func (r *reservation) growBody(n int64) error {
	if n <= r.body {
		return nil
	}
	if !r.account.Grow(r.body, n) {
		return outOfMemory(r.account)
	}
	r.body = n
	return nil
}

// reserveResponse reserves n bytes for the response. A response that exceeds the limit of
// a connection is counted regardless of the limits, since it could never be read otherwise.
func (r *reservation) reserveResponse(n int) error {
	switch {
	case r.tryReserveResponse(n):
	case r.account.Allows(int64(n)):
		return outOfMemory(r.account)
	default:
		r.charge(n)
	}
	return nil
}

// tryReserveResponse reserves n bytes for the response, without waiting.
func (r *reservation) tryReserveResponse(n int) bool {
	if !r.account.ReserveResponse(int64(n)) {
		return false
	}
	r.response = int64(n)
	return true
}

// awaitResponse is tryReserveResponse, but waits until ctx ends.
func (r *reservation) awaitResponse(ctx context.Context, n int) bool {
	if !r.account.AwaitResponse(ctx, int64(n)) {
		return false
	}
	r.response = int64(n)
	return true
}

// charge counts n bytes for the response, regardless of the limits.
func (r *reservation) charge(n int) {
	if r.account == nil {
		return
	}
	r.account.Charge(int64(n))
	r.charged = int64(n)
}

// release releases everything that is reserved.
func (r *reservation) release() {
	r.account.Return(r.body)
	r.account.Return(r.response)
	r.account.Release(r.charged)
	r.body, r.response, r.charged = 0, 0, 0
}
