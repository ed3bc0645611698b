package invoker

import (
	"sync"

	"platform/internal/ids"
	"platform/partition/machine"
)

// The request of an attempt stays open for what the handler may wait for. Most attempts of some handlers wait for nothing,
// and the request of such a handler ends right after the input: then neither the server nor the endpoint has to process
// the end separately. If the handler waits for something nevertheless, it suspends, and the request of its next attempt stays open.

const (
	// firstWhole is how many attempts of a handler in a row must have waited for nothing before its requests end with the input.
	firstWhole = 64
	// mostWhole bounds that number, which doubles each time a handler had to suspend because its request had ended.
	mostWhole = 1 << 16
	// maxWholeHandlers bounds the handlers of which this is known.
	maxWholeHandlers = 4096
)

// wholeRequests has what is known of each handler.
type wholeRequests struct {
	mu        sync.Mutex // covers the field below
	byHandler map[handlerName]*handlerWaits
}

type handlerName struct {
	deployment       ids.Deployment
	service, handler string
}

func (w *wholeRequests) of(d ids.Deployment, t *machine.Target) *handlerWaits {
	name := handlerName{d, t.Service, t.Handler}
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.byHandler[name]
	if h != nil {
		return h
	}
	if w.byHandler == nil || len(w.byHandler) >= maxWholeHandlers { // mostly of deployments that are gone
		w.byHandler = map[handlerName]*handlerWaits{}
	}
	h = &handlerWaits{required: firstWhole}
	w.byHandler[name] = h
	return h
}

// handlerWaits is whether the attempts of a handler wait for anything but their input.
type handlerWaits struct {
	mu       sync.Mutex // covers the fields below
	row      int        // attempts in a row that waited for nothing
	required int        // of them
}

// never reports whether the next request should end with the input.
func (h *handlerWaits) never() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.row >= h.required
}

// ended records an attempt whose handler ended or suspended. Whole means that its request ended with the input.
func (h *handlerWaits) ended(waited, whole bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !waited {
		h.row = min(h.row+1, mostWhole)
		return
	}
	if whole && h.row >= h.required { // those in progress together count once
		h.required = min(2*h.required, mostWhole)
	}
	h.row = 0
}

// endRequest ends the request of an attempt after the input. The timeouts are those of an open one; t.mu is held.
func (a *attempt) endRequest() {
	a.whole = true
	a.activity.remainingInactivity = a.plan.options.InactivityTimeout
	a.t.move(suspend)
}

// recordWaits records whether the handler, which ends or suspends, has waited for anything, or could have;
// t.mu is held.
func (a *attempt) recordWaits(suspends bool) {
	waited := suspends || a.notifications.next > 1 || len(a.handler.completions.spans) > 0
	a.plan.waits.ended(waited, a.whole)
}
