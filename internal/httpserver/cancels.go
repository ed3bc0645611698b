package httpserver

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"platform/internal/tokenbucket"
)

// A client that cancels its requests right after sending them has more of them executed than its
// streams and connections allow: the invocations that it starts continue without it. So cancels of
// young requests are bounded, per connection and per remote address, so that connecting again does
// not help. Clients that mostly wait for their responses are not bounded: every completedPerCancel
// requests that complete compensate a cancel. Some of that is saved for later: if a node does not respond for
// seconds, a proxy cancels the requests of all its clients at the same time.
const (
	// youngRequest is the age up to which cancelling a request counts. Cancels of older ones are timeouts,
	// and no more frequent than the streams of a client allow.
	youngRequest = time.Second
	// completedPerCancel is the number of completed requests that compensate a cancel.
	completedPerCancel = 2
	// indebtedConnection is the number of cancels after which a connection is closed whose address has
	// exhausted its own bound.
	indebtedConnection = 100
	// savedCapacities is how many cancels completed requests compensate in advance, as a multiple of the capacity.
	savedCapacities = 2
	// maxRefusal bounds how long an address is refused that cancels no further requests.
	maxRefusal = 30 * time.Second
	// idleSources bounds the addresses without connections whose cancels are remembered.
	idleSources = 1024
	// sweepPause is the minimum time between two searches for those that can be forgotten.
	sweepPause = time.Second
	// goAwayTimeout bounds how long writing the reason may delay closing a connection.
	goAwayTimeout = 100 * time.Millisecond
)

var (
	connectionCancels = tokenbucket.Rate{Count: 100, Period: time.Second, Capacity: 1000}
	// An address may drop a request on each of its connections, as the end of a load test does.
	addressCancels = tokenbucket.Rate{Count: 200, Period: time.Second, Capacity: 5000}
)

// tooManyCancels is why an address is refused.
var tooManyCancels = fmt.Sprintf("this address has cancelled more than %d requests within a second of sending them, and more than %d per second since",
	addressCancels.Capacity, addressCancels.Count)

// cancelBound bounds cancels.
type cancelBound struct {
	tokenbucket.Bucket
	saved, most int // cancels that are compensated in advance
}

func newCancelBound(r tokenbucket.Rate) cancelBound {
	return cancelBound{Bucket: tokenbucket.New(r), most: savedCapacities * r.Capacity}
}

// add counts a cancel.
func (b *cancelBound) add(now time.Time) {
	switch {
	case b.saved > 0:
		b.saved--
	case b.Next(now).Sub(now) < maxRefusal:
		b.Take(now)
	}
}

// compensate reverses a cancel, or saves that for a later one.
func (b *cancelBound) compensate(now time.Time) {
	if b.Full(now) {
		b.saved = min(b.saved+1, b.most)
	} else {
		b.Return()
	}
}

// source is a remote address.
type source struct {
	open      int // connections
	cancels   cancelBound
	completed int // requests, not of open connections, that have not compensated a cancel
}

// addCancel counts the cancel of a young request, and reports whether the connection must be closed.
func (l *boundedListener) addCancel(c *conn, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.cancelled++
	c.cancels.add(now)
	exhausted := false
	if l.limit > 0 {
		debt := l.addCancelOf(c.addr, now)
		exhausted = debt > 0 && c.cancelled > indebtedConnection || debt > maxRefusal/2
	}
	return !c.cancels.Has(now) || exhausted
}

// addCancelOf counts the cancel of a young request of an address, and returns how long the address exceeds its
// bound. The mutex must be held.
func (l *boundedListener) addCancelOf(addr netip.Addr, now time.Time) (debt time.Duration) {
	from := l.sources[addr]
	if from == nil { // no connection of its own is open
		from = &source{cancels: newCancelBound(addressCancels)}
		l.sources[addr] = from
		defer l.forget(addr, now)
	}
	from.cancels.add(now)
	return from.cancels.Next(now).Sub(now)
}

// addForwardedCancel counts the cancel of a young request that a proxy has forwarded.
func (l *boundedListener) addForwardedCancel(client netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit > 0 {
		l.addCancelOf(client, now)
	}
}

// addForwardedCompleted counts a completed request that a proxy has forwarded.
func (l *boundedListener) addForwardedCompleted(client netip.Addr, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from := l.sources[client]; from != nil {
		from.addRest(1, now)
	}
}

// refusal returns why a forwarded request of a client is refused; empty if it is not.
func (l *boundedListener) refusal(client netip.Addr, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from := l.sources[client]; l.limit > 0 && from != nil && !from.cancels.Has(now) {
		return tooManyCancels
	}
	return ""
}

// addCompleted counts a completed request.
func (l *boundedListener) addCompleted(c *conn) {
	if c.completed.Add(1)%completedPerCancel != 0 {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	c.cancels.compensate(now)
	if from := l.sources[c.addr]; from != nil {
		from.cancels.compensate(now)
	}
}

// addRest counts completed requests of a closed connection, or forwarded ones, that are too few to compensate a cancel.
// The mutex must be held.
func (s *source) addRest(completed int64, now time.Time) {
	if s.completed += int(completed % completedPerCancel); s.completed >= completedPerCancel {
		s.completed -= completedPerCancel
		s.cancels.compensate(now)
	}
}

// forget drops the sources without connections that are like new ones, or this one if there are too many.
// The mutex must be held.
func (l *boundedListener) forget(addr netip.Addr, now time.Time) {
	if l.idle++; l.idle > idleSources && now.Sub(l.swept) >= sweepPause {
		l.swept = now
		for other, s := range l.sources {
			if s.open == 0 && s.cancels.Full(now) {
				delete(l.sources, other)
				l.idle--
			}
		}
	}
	if s := l.sources[addr]; s != nil && (l.idle > idleSources || s.cancels.Full(now)) {
		delete(l.sources, addr)
		l.idle--
	}
}

type connKey struct{}

// Completed records that a request was executed, which compensates cancelled ones. It must not be called for
// requests that cost less than those whose cancels are bounded, such as refused ones.
func Completed(ctx context.Context) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok || ctx.Err() != nil {
		return
	}
	if client, forwarded := ctx.Value(clientKey{}).(netip.Addr); forwarded {
		c.listener.addForwardedCompleted(client, time.Now())
	} else {
		c.listener.addCompleted(c)
	}
}

// boundCancels closes connections whose client cancels too many young requests. Requests that are
// cancelled before they are served do not reach the handler. The end of base cancels requests, too.
func boundCancels(base context.Context, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(*conn)
		if !ok {
			h.ServeHTTP(w, r)
			return
		}
		if r.Context().Err() != nil {
			c.cancel(base, r)
			return
		}
		begin := time.Now()
		stop := context.AfterFunc(r.Context(), func() { // not when the handler returns, which may take longer
			if time.Since(begin) < youngRequest {
				c.cancel(base, r)
			}
		})
		defer stop()
		h.ServeHTTP(w, r)
	})
}

// cancel counts the cancel of a request, unless it is due to the end of base.
func (c *conn) cancel(base context.Context, r *http.Request) {
	if base.Err() != nil {
		return
	}
	if client, forwarded := r.Context().Value(clientKey{}).(netip.Addr); forwarded {
		c.listener.addForwardedCancel(client, time.Now())
	} else if c.listener.addCancel(c, time.Now()) {
		c.calm(r.ProtoMajor)
	}
}

// calm closes the connection, in HTTP/2 with the reason.
func (c *conn) calm(protocol int) {
	if !c.calmed.CompareAndSwap(false, true) {
		return
	}
	c.listener.closed.add(c.addr, "requests cancelled within a second of sending them")
	if protocol == 2 {
		// The server may be writing a frame whose other half follows. The client then reads an invalid frame,
		// which ends the connection, too.
		timeout := time.AfterFunc(goAwayTimeout, func() { _ = c.Close() })
		defer timeout.Stop()
		_, _ = c.outer.Write(goAwayCalm)
	}
	_ = c.Close()
}

// goAwayCalm is a GOAWAY frame with the error code ENHANCE_YOUR_CALM (RFC 9113, 6.8).
var goAwayCalm = goAway(0xb, "too many requests were cancelled")

func goAway(code uint32, reason string) []byte {
	const frameGoAway, lastStream = 0x7, 1<<31 - 1
	length := 8 + len(reason)
	b := []byte{byte(length >> 16), byte(length >> 8), byte(length), frameGoAway, 0, 0, 0, 0, 0}
	b = binary.BigEndian.AppendUint32(b, lastStream)
	b = binary.BigEndian.AppendUint32(b, code)
	return append(b, reason...)
}
