package invoker

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
	"platform/internal/stats"
)

var (
	descOpen      = metrics.Desc("invoker_open_attempts", "Open attempts of the services with the most of them.", "service")
	descWaiting   = metrics.Desc("invoker_waiting_invocations", "Invocations that are admitted and wait for a slot for an attempt, of the services with the most of them.", "service")
	descAge       = metrics.Desc("invoker_waiting_age_seconds", "How long the oldest invocation that is admitted has waited for a slot for an attempt, of the services with the most of them.", "service")
	descSlots     = metrics.Desc("invoker_slots", "Attempts that may be open (worker.invoker.concurrent-invocations-limit), 0 for unlimited.")
	descSilent    = metrics.Desc("invoker_silent_attempts", "Open attempts whose endpoint has sent no response headers for longer than worker.invoker.no-response-warning.")
	descSilences  = metrics.Desc("invoker_silent_attempts_total", "Attempts whose endpoint sent no response headers for that long.")
	descThrottled = metrics.Desc("invoker_throttled_seconds_total", "Time during which attempts waited for tokens: to start (worker.invoker.invocation-throttling), or for their next command (action-throttling).", "bucket")
	descPool      = metrics.PoolUsage("invoker")
	descPoolSize  = metrics.PoolCapacity("invoker")
)

// Collector returns the metrics of the attempts that are open or wait.
func (iv *Invoker) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		iv.collectServices(out)
		out.Gauge(descSlots, float64(iv.cfg.ConcurrentInvocations))
		silent, silences := iv.Silent()
		out.Gauge(descSilent, float64(silent))
		out.Counter(descSilences, silences)
		iv.collectThrottles(out)
		payloads, limit := iv.Memory()
		out.Gauge(descPool, float64(payloads))
		out.Gauge(descPoolSize, float64(limit))
	}, descOpen, descWaiting, descAge, descSlots, descSilent, descSilences, descThrottled, descPool, descPoolSize)
}

func (iv *Invoker) collectThrottles(out metrics.Values) {
	now := time.Now()
	for _, b := range []struct {
		name string
		mu   *sync.Mutex
		of   *throttle
	}{{"invocation", &iv.slots.mu, &iv.slots.starts}, {"action", &iv.actions.mu, &iv.actions.tokens}} {
		b.mu.Lock()
		waited := b.of.waited(now)
		b.mu.Unlock()
		out.Seconds(descThrottled, waited, b.name)
	}
}

// collectServices collects the attempts of the busiest services, and the sum of the others.
func (iv *Invoker) collectServices(out metrics.Values) {
	loads := iv.Load()
	for _, service := range iv.cfg.Stats.Services() {
		if _, busy := loads[service]; !busy {
			loads[service] = stats.Load{} // 0 rather than a gap
		}
	}
	services := slices.SortedFunc(maps.Keys(loads), func(a, b string) int {
		return cmp.Compare(loads[b].InFlight+loads[b].Waiting, loads[a].InFlight+loads[a].Waiting)
	})
	rest := stats.Load{}
	for i, service := range services {
		if load := loads[service]; i < stats.MaxServices {
			collectLoad(out, service, load)
		} else {
			rest.InFlight += load.InFlight
			rest.Waiting += load.Waiting
			rest.Oldest = max(rest.Oldest, load.Oldest)
		}
	}
	if len(services) > stats.MaxServices {
		collectLoad(out, stats.OtherLabel, rest)
	}
}

func collectLoad(out metrics.Values, service string, load stats.Load) {
	out.Gauge(descOpen, float64(load.InFlight), service)
	out.Gauge(descWaiting, float64(load.Waiting), service)
	out.Gauge(descAge, load.Oldest.Seconds(), service)
}
