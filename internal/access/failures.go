package access

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"platform/internal/metrics"
)

// Bounds of the log messages about failed authentications: of one address, and of all.
const (
	failureInterval = 10 * time.Second
	failureBurst    = 20 // of all addresses; then one per second
	maxFailing      = 1000
)

// Failures counts and logs requests without valid credentials, so that operators notice clients with
// expired or revoked tokens, and attempts to guess one. It is safe for concurrent use. A nil
// *Failures does nothing.
type Failures struct {
	log   *slog.Logger
	now   func() time.Time
	ports map[string]*portFailures // fixed

	mu      sync.Mutex // covers the fields below
	all     *rate.Limiter
	failing map[string]*failingAddress
	omitted uint64 // messages about addresses that are no longer in failing
}

// portFailures counts the failures at one port.
type portFailures struct{ invalid, missing atomic.Uint64 }

// failingAddress is an address, or a network of IPv6, whose requests failed.
type failingAddress struct {
	logged  time.Time
	omitted uint64 // since then
}

// NewFailures returns a Failures for the ports with these names.
func NewFailures(log *slog.Logger, ports ...string) *Failures {
	f := &Failures{
		log: log, now: time.Now, ports: map[string]*portFailures{}, failing: map[string]*failingAddress{},
		all: rate.NewLimiter(1, failureBurst),
	}
	for _, port := range ports {
		f.ports[port] = new(portFailures)
	}
	return f
}

// failure is a request whose credentials are not valid.
type failure struct {
	port   string
	reason string
	// token is the ID of the token of the cluster that the request has, principal the name of that
	// token; empty if there is none with that ID.
	token, principal string
}

// invalid counts and logs a request whose credentials are not valid.
func (f *Failures) invalid(r *http.Request, what failure) {
	if f == nil {
		return
	}
	f.ports[what.port].invalid.Add(1)
	network := NetworkOf(r.RemoteAddr)
	omitted, due := f.due(network)
	if !due {
		return
	}
	f.log.Warn("authentication failed", "port", what.port, "address", network, "reason", what.reason, "principal", what.principal, "token_id", what.token,
		"method", r.Method, "omitted", omitted)
}

// missing counts a request that was rejected because it has no credentials.
func (f *Failures) missing(port string) {
	if f != nil {
		f.ports[port].missing.Add(1)
	}
}

// due reports whether to log a failure of an address. omitted is the number of failures of the
// address that were not logged since the last message about it, and of addresses that were forgotten.
func (f *Failures) due(network string) (omitted uint64, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if f.failing[network] == nil {
		if len(f.failing) >= maxFailing {
			for _, address := range f.failing {
				f.omitted += address.omitted
			}
			clear(f.failing)
		}
		f.failing[network] = &failingAddress{}
	}
	address := f.failing[network]
	if now.Sub(address.logged) < failureInterval || !f.all.AllowN(now, 1) {
		address.omitted++
		return 0, false
	}
	omitted = address.omitted + f.omitted
	*address, f.omitted = failingAddress{logged: now}, 0
	return omitted, true
}

var descFailures = metrics.Desc("access_failures_total", "Requests without valid credentials, by port and reason: invalid for those with credentials that are unknown, expired or revoked, missing for those that were rejected because they have none.", "port", "reason")

// Collector returns the metrics.
func (f *Failures) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		for port, failures := range f.ports {
			out.Counter(descFailures, failures.invalid.Load(), port, "invalid")
			out.Counter(descFailures, failures.missing.Load(), port, "missing")
		}
	}, descFailures)
}
