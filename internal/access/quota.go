package access

import (
	"io"
	"math"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Quotas bound how much each client uses: a principal, or an address for clients without
// credentials.
type Quotas struct {
	requests, bytes int64 // per second; 0: no bound
	now             func() time.Time

	mu sync.Mutex // covers the maps
	// Principals have a table of their own: clients without credentials, who can have many
	// addresses, cannot fill it.
	principals, addresses map[string]*quota
}

// quota is that of one client.
type quota struct{ requests, bytes *rate.Limiter }

const (
	// quotaBurst is the number of seconds of its quota that an idle client may use in one burst.
	quotaBurst = 10
	// maxQuotas bounds the principals, and the addresses, that have their own quota; further ones
	// share one.
	maxQuotas = 20_000
)

// Quota names a bound that a client has exceeded.
type Quota string

// The bounds; empty for none.
const (
	QuotaRequests Quota = "requests"
	QuotaBytes    Quota = "bytes of request bodies"
)

// NewQuotas returns quotas per second, 0 for no bound; nil if there are none.
func NewQuotas(requests, bytes int64) *Quotas {
	if requests == 0 && bytes == 0 {
		return nil
	}
	return &Quotas{requests: requests, bytes: bytes, now: time.Now, principals: map[string]*quota{}, addresses: map[string]*quota{}}
}

// Admit counts a request and, while it is read, its body. If the client has exceeded a quota, it
// returns which one, and when to try again.
func (q *Quotas) Admit(r *http.Request) (exceeded Quota, after time.Duration) {
	if q == nil {
		return "", 0
	}
	now := q.now()
	of := q.of(r, now)
	if of.bytes != nil {
		if debt := -of.bytes.TokensAt(now); debt > 0 {
			return QuotaBytes, time.Duration(debt / float64(q.bytes) * float64(time.Second))
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &meteredBody{r.Body, of.bytes, q.now}
		}
	}
	if of.requests != nil && !of.requests.AllowN(now, 1) {
		return QuotaRequests, time.Second
	}
	return "", 0
}

// meteredBody charges what is read. A body that was admitted may exceed the quota: the next
// request of the client then waits.
type meteredBody struct {
	io.ReadCloser
	limit *rate.Limiter
	now   func() time.Time
}

func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	now := b.now()
	for left := n; left > 0; left -= b.limit.Burst() {
		b.limit.ReserveN(now, min(left, b.limit.Burst()))
	}
	return n, err
}

// others is the name of those that share a quota.
const others = "others"

// NetworkOf returns what identifies a client without credentials at a remote address, host:port: the
// IP address, or its /64 of IPv6, since a host may have all addresses of such a network.
func NetworkOf(remote string) string {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return others
	}
	ip := address.Addr().Unmap()
	if ip.Is6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}

// of returns the quota of the principal of a request, or else of its address.
func (q *Quotas) of(r *http.Request, now time.Time) *quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	table, client := q.addresses, ""
	if p := From(r.Context()); p.Name != "" {
		table, client = q.principals, "principal "+p.Name
	} else {
		client = NetworkOf(r.RemoteAddr)
	}
	if table[client] == nil && len(table) >= maxQuotas {
		forgetIdle(table, now)
		if len(table) >= maxQuotas {
			client = others
		}
	}
	known := table[client]
	if known == nil {
		known = &quota{limiterOf(q.requests), limiterOf(q.bytes)}
		table[client] = known
	}
	return known
}

// limiterOf returns the limiter of a quota; nil if there is none.
func limiterOf(perSecond int64) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), int(min(perSecond, math.MaxInt/quotaBurst))*quotaBurst)
}

// forgetIdle removes clients whose full burst is available again, a limited part of them per call.
func forgetIdle(table map[string]*quota, now time.Time) {
	checked := 0
	for client, of := range table {
		if checked++; checked > maxQuotas/10 {
			return
		}
		full := func(l *rate.Limiter) bool { return l == nil || l.TokensAt(now) >= float64(l.Burst()) }
		if full(of.requests) && full(of.bytes) {
			delete(table, client)
		}
	}
}
