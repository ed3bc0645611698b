package ingress

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platform/internal/metrics"
	"platform/internal/stats"
	"platform/internal/tracing"
)

// Metrics count requests. Nothing is counted per service or key, so that the number of series does
// not depend on callers. Counting takes no locks.
type Metrics struct {
	requests  [kinds][results]prometheus.Counter
	durations [kinds]*stats.Durations
	active    atomic.Int64
}

// kind is the kind of a request.
type kind uint8

const (
	kindUncounted kind = iota // health checks and preflights
	kindCall
	kindSend
	kindAttach
	kindOutput
	kindAwakeable // an awakeable
	kindSignal
	kindOther // lookups, and unknown paths
	kinds
)

var kindNames = [kinds]string{"", "call", "send", "attach", "output", "awakeable", "signal", "other"}

// result classifies the outcome of a request.
type result uint8

const (
	resultOK result = iota
	resultInvocationError
	resultNotReady
	resultRequestError
	resultRateLimited
	resultUnavailable
	resultClientGone
	resultIngressError
	results
)

var resultNames = [results]string{
	"ok", "invocation_error", "not_ready", "request_error", "rate_limited", "unavailable", "client_gone", "ingress_error",
}

// NewMetrics registers the metrics of an ingress.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	const subsystem = "ingress"
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: metrics.Namespace, Subsystem: subsystem, Name: "requests_total", Help: "Requests with a response, by kind and result.",
	}, []string{"request", "result"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: metrics.Namespace, Subsystem: subsystem, Name: "request_duration_seconds", Help: "Time until the response; for calls and attaches including the execution of the handler.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18),
	}, []string{"request"})
	m := new(Metrics)
	active := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metrics.Namespace, Subsystem: subsystem, Name: "requests_in_progress", Help: "Requests without a response yet, including health checks.",
	}, func() float64 { return float64(m.active.Load()) })
	reg.MustRegister(requests, durations, active)
	for k := kindUncounted + 1; k < kinds; k++ {
		m.durations[k] = stats.NewDurations(durations.WithLabelValues(kindNames[k]))
		for r := range results {
			m.requests[k][r] = requests.WithLabelValues(kindNames[k], resultNames[r])
		}
	}
	return m
}

// exchange is a response writer with the kind and the status under which the request is counted.
type exchange struct {
	http.ResponseWriter
	kind   kind
	status int    // 0: none was written
	trace  string // traceparent of the request's span; empty: none
}

// WriteHeader records the status.
func (e *exchange) WriteHeader(status int) {
	e.status = status
	e.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// countAs sets the kind of a request on the writer of its response.
func countAs(w http.ResponseWriter, k kind) {
	if e, counted := w.(*exchange); counted {
		e.kind = k
	}
}

// counted serves a request and counts it.
func (m *Metrics) counted(w http.ResponseWriter, r *http.Request, handle http.HandlerFunc) {
	e := &exchange{ResponseWriter: w, kind: kindOther}
	begin, whole := time.Now(), false
	m.active.Add(1)
	defer func() {
		m.active.Add(-1)
		if e.kind == kindUncounted {
			return
		}
		result := resultIngressError // a panic has cut the connection
		if whole {
			result = e.result()
		}
		m.requests[e.kind][result].Inc()
		m.durations[e.kind].Observe(time.Since(begin), tracing.SampledTraceID(e.trace))
	}()
	handle(e, r)
	whole = true
}

// result returns the outcome of the request.
func (e *exchange) result() result {
	if source := e.Header()[headerSource]; len(source) > 0 && source[0] == fromInvocation {
		return resultInvocationError
	}
	switch {
	case e.status >= 200 && e.status < 400:
		return resultOK
	case e.status == statusNotReady:
		return resultNotReady
	case e.status == http.StatusTooManyRequests:
		return resultRateLimited
	case e.status == http.StatusServiceUnavailable:
		return resultUnavailable
	case e.status == statusClientClosed:
		return resultClientGone
	case e.status >= 400 && e.status < 500:
		return resultRequestError
	}
	return resultIngressError
}
