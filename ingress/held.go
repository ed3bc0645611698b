package ingress

import (
	"context"
	"net/http"

	"platform/internal/budget"
)

// held is the memory that a request has reserved from the account of its connection, for its body
// and response. It must be used by one goroutine only.
type held struct {
	account *budget.Account
	bytes   int64
}

func hold(r *http.Request) *held { return &held{account: budget.From(r.Context())} }

// upTo raises the reservation to at least n bytes.
func (h *held) upTo(n int64) error {
	if n <= h.bytes {
		return nil
	}
	if !h.account.Grow(h.bytes, n) {
		return outOfMemory(h.account)
	}
	h.bytes = n
	return nil
}

// reserveResponse reserves n bytes more for a response. A response that exceeds the limit of
// a connection is counted regardless of the limits, since it could never be read otherwise.
func (h *held) reserveResponse(n int) error {
	switch {
	case h.tryReserveResponse(n):
	case h.account.Allows(int64(n)):
		return outOfMemory(h.account)
	default:
		h.charge(n)
	}
	return nil
}

// tryReserveResponse reserves n bytes more for a response, without waiting.
func (h *held) tryReserveResponse(n int) bool {
	if !h.account.ReserveResponse(int64(n)) {
		return false
	}
	h.bytes += int64(n)
	return true
}

// awaitAnswer is tryReserveResponse, but waits until ctx ends.
func (h *held) awaitAnswer(ctx context.Context, n int) bool {
	if !h.account.AwaitResponse(ctx, int64(n)) {
		return false
	}
	h.bytes += int64(n)
	return true
}

// charge counts n bytes more, regardless of the limits.
func (h *held) charge(n int) {
	if h.account == nil {
		return
	}
	h.account.Charge(int64(n))
	h.bytes += int64(n)
}

// release releases everything that is held.
func (h *held) release() {
	h.account.Release(h.bytes)
	h.bytes = 0
}
