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

	body     int64
	response int64
	charged  int64 // regardless of the limits
}

func hold(r *http.Request) *held { return &held{account: budget.From(r.Context())} }

// upTo raises the reservation for the body to at least n bytes.
func (h *held) upTo(n int64) error {
	if n <= h.body {
		return nil
	}
	if !h.account.Grow(h.body, n) {
		return outOfMemory(h.account)
	}
	h.body = n
	return nil
}

// reserveResponse reserves n bytes for the response. A response that exceeds the limit of
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

// tryReserveResponse reserves n bytes for the response, without waiting.
func (h *held) tryReserveResponse(n int) bool {
	if !h.account.ReserveResponse(int64(n)) {
		return false
	}
	h.response = int64(n)
	return true
}

// awaitAnswer is tryReserveResponse, but waits until ctx ends.
func (h *held) awaitAnswer(ctx context.Context, n int) bool {
	if !h.account.AwaitResponse(ctx, int64(n)) {
		return false
	}
	h.response = int64(n)
	return true
}

// charge counts n bytes for the response, regardless of the limits.
func (h *held) charge(n int) {
	if h.account == nil {
		return
	}
	h.account.Charge(int64(n))
	h.charged = int64(n)
}

// release releases everything that is held.
func (h *held) release() {
	h.account.Return(h.body)
	h.account.Return(h.response)
	h.account.Release(h.charged)
	h.body, h.response, h.charged = 0, 0, 0
}
