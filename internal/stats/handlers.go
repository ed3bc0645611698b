package stats

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxHandlers is the number of handlers whose metrics are separate. The others have the label
// OtherLabel as service and handler.
const (
	maxHandlers = 1000
	OtherLabel  = "(other)"
)

// Outcome is how an attempt ended.
type Outcome uint8

// The outcomes of attempts.
const (
	Succeeded Outcome = iota // the invocation has a result
	Suspended                // it waits without an attempt
	Yielded                  // it had to release its slot, or to pause
	Failed
	Abandoned // the attempt became obsolete
	outcomes
)

var outcomeNames = [outcomes]string{"completed", "suspended", "yielded", "failed", "abandoned"}

// String returns the name of the outcome.
func (o Outcome) String() string { return outcomeNames[o] }

// End is how an invocation ended.
type End uint8

// The ends of invocations.
const (
	EndSuccess End = iota
	EndFailure
	EndCancelled // by a request to cancel or kill it, which is no failure of its handler
	ends
)

var endNames = [ends]string{"success", "failure", "cancelled"}

// Handlers are metrics of the work of each handler. They grow with the number of handlers called,
// up to maxHandlers, and not with keys or IDs. The methods may be called concurrently, and on a nil
// *Handlers, which counts nothing.
type Handlers struct {
	perHandler           bool
	completed            *prometheus.CounterVec
	durations, attempted *prometheus.HistogramVec
	handlers             atomic.Pointer[map[handlerName]*handlerMetrics] // the map does not change

	mu sync.Mutex // serializes changes of handlers
}

type handlerName struct{ service, handler string }

// handlerMetrics are the metrics of one handler.
type handlerMetrics struct {
	name      handlerName
	completed [ends]prometheus.Counter
	duration  prometheus.Observer
	attempts  [outcomes]atomic.Pointer[Durations] // nil: none had this outcome
}

// durationBuckets are those of invocations and attempts, which take from a millisecond to
// days, in seconds.
var durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}

// NewHandlers registers metrics with the labels service and handler; without perHandler, the
// handler is always empty.
func NewHandlers(reg prometheus.Registerer, namespace string, perHandler bool) *Handlers {
	h := &Handlers{
		perHandler: perHandler,
		completed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "invocations_completed_total", Help: "Invocations that ended on partitions led by this node, by result: success, failure, or cancelled, which includes killed.",
		}, []string{"service", "handler", "result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "invocation_duration_seconds", Help: "Time from when an invocation was due to its end.", Buckets: durationBuckets,
		}, []string{"service", "handler"}),
		attempted: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "invoker_attempt_duration_seconds", Help: "Duration of attempts, by outcome: completed, suspended, yielded, failed, abandoned.", Buckets: durationBuckets,
		}, []string{"service", "handler", "outcome"}),
	}
	h.handlers.Store(&map[handlerName]*handlerMetrics{})
	reg.MustRegister(h.completed, h.durations, h.attempted)
	return h
}

// of returns the metrics of a handler.
func (h *Handlers) of(service, handler string) *handlerMetrics {
	name := handlerName{service: service}
	if h.perHandler {
		name.handler = handler
	}
	if m := (*h.handlers.Load())[name]; m != nil {
		return m
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known := *h.handlers.Load()
	if len(known) >= maxHandlers {
		name = handlerName{OtherLabel, OtherLabel}
	}
	if m := known[name]; m != nil {
		return m
	}
	name = handlerName{strings.Clone(name.service), strings.Clone(name.handler)} // they may be part of a log entry
	m := &handlerMetrics{name: name, duration: h.durations.WithLabelValues(name.service, name.handler)}
	for i, result := range endNames {
		m.completed[i] = h.completed.WithLabelValues(name.service, name.handler, result)
	}
	grown := maps.Clone(known)
	grown[name] = m
	h.handlers.Store(&grown)
	return m
}

// Ended counts the end of an invocation, and the time since it was due; negative if it was not
// due yet.
func (h *Handlers) Ended(service, handler string, how End, took time.Duration) {
	if h == nil {
		return
	}
	m := h.of(service, handler)
	m.completed[how].Inc()
	m.duration.Observe(max(took, 0).Seconds())
}

// Attempted counts an attempt that has ended, with its trace as an exemplar unless that is empty.
func (h *Handlers) Attempted(service, handler string, how Outcome, took time.Duration, trace string) {
	if h == nil {
		return
	}
	m := h.of(service, handler)
	durations := m.attempts[how].Load()
	if durations == nil {
		durations = NewDurations(h.attempted.WithLabelValues(m.name.service, m.name.handler, how.String()))
		m.attempts[how].Store(durations)
	}
	durations.Observe(took, trace)
}
