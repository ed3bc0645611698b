package stats

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A History has this many steps of this length.
const (
	Step  = 10 * time.Second
	Steps = 1080 // three hours
)

const stepMillis = int64(Step / time.Millisecond)

// Load is the state of a service's attempts at one point in time.
type Load struct {
	InFlight int           // open attempts
	Waiting  int           // invocations that wait for a slot
	Oldest   time.Duration // how long the oldest of them has waited
}

// History keeps what was counted in each of the last Steps steps. It is safe for concurrent use.
type History struct {
	counters *Counters
	load     func() map[string]Load // by service

	mu    sync.Mutex // covers the fields below
	steps []step     // ascending by time; at most Steps
	last  map[string]*reading
}

// step is what was counted in one step, of the services with activity.
type step struct {
	at       int64 // start in Unix milliseconds, a multiple of stepMillis
	services []serviceStep
}

type serviceStep struct {
	service                                                           string
	started, succeeded, failed, cancelled, retries, inFlight, waiting uint32
	latencies                                                         []latencyCount
}

type latencyCount struct {
	bucket uint8
	count  uint32
}

// reading is the value of the counters at the end of a step.
type reading struct {
	started, succeeded, failed, cancelled, retries uint64
	latencies                                      [Buckets]uint64
	idle                                           int // steps without a change
}

// NewHistory returns an empty history.
func NewHistory(counters *Counters, load func() map[string]Load) *History {
	return &History{counters: counters, load: load, last: map[string]*reading{}}
}

// Run records a step at the end of each, until ctx ends.
func (h *History) Run(ctx context.Context) error {
	for {
		now := time.Now()
		timer := time.NewTimer(now.Truncate(Step).Add(Step).Sub(now))
		select {
		case <-timer.C:
			h.Record(time.Now())
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// Record ends the step before now. Nothing is lost if the clock was set back: it is counted in a
// later step.
func (h *History) Record(now time.Time) {
	at := now.UnixMilli()/stepMillis*stepMillis - stepMillis
	loads := h.load()
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.steps); n > 0 && at <= h.steps[n-1].at {
		return
	}
	s := step{at: at}
	read := *h.counters.services.Load()
	for _, service := range slices.Sorted(maps.Keys(read)) {
		load := loads[service]
		delete(loads, service)
		if counted, active := h.read(service, read[service], load); active {
			s.services = append(s.services, counted)
		} else if h.last[service].idle >= Steps {
			delete(h.last, service)
			h.counters.forget(service)
		}
	}
	rest := Load{}
	for _, load := range loads {
		rest.InFlight += load.InFlight
		rest.Waiting += load.Waiting
	}
	if counted, active := h.read(Other, &h.counters.other, rest); active {
		s.services = append(s.services, counted)
	}
	h.steps = append(h.steps, s)
	if len(h.steps) > Steps {
		h.steps = slices.Clone(h.steps[len(h.steps)-Steps:])
	}
}

// read returns what a service counted since its last reading, and whether there is anything.
func (h *History) read(service string, c *counts, load Load) (s serviceStep, active bool) {
	last := h.last[service]
	if last == nil {
		last = new(reading)
		h.last[service] = last
	}
	delta := func(now uint64, before *uint64) uint32 {
		d := now - *before
		*before = now
		return uint32(min(d, 1<<32-1))
	}
	s = serviceStep{
		service: service, started: delta(c.started.Load(), &last.started), succeeded: delta(c.succeeded.Load(), &last.succeeded),
		failed: delta(c.failed.Load(), &last.failed), cancelled: delta(c.cancelled.Load(), &last.cancelled), retries: delta(c.retries.Load(), &last.retries),
		inFlight: uint32(load.InFlight), waiting: uint32(load.Waiting),
	}
	for i := range last.latencies {
		if n := delta(c.latencies[i].Load(), &last.latencies[i]); n > 0 {
			s.latencies = append(s.latencies, latencyCount{uint8(i), n})
		}
	}
	active = s.started|s.succeeded|s.failed|s.cancelled|s.retries|s.inFlight|s.waiting != 0 || len(s.latencies) > 0
	last.idle++
	if active {
		last.idle = 0
	}
	return s, active
}

// Query selects a part of a history. Times are in Unix milliseconds.
type Query struct {
	From, To int64 // multiples of Step
	Step     int64 // a multiple of Step of the history
	Services int   // the number of services to list: the busiest; the others are summed up
	Service  string
}

// Series are values of one service per step of a query, the first for the step First.
type Series struct {
	Service                                        string // Other: the sum of those that are not listed
	Started, Succeeded, Failed, Cancelled, Retries []uint64
	InFlight, Backlog                              []uint64 // the maximum within the step
	Latencies                                      [][Buckets]uint64
}

// Result is the result of a query. All series have Count values.
type Result struct {
	First    int // index of the first step with data
	Count    int // steps from there to the last one with data
	Services []Series
}

func newSeries(service string, n int) *Series {
	return &Series{
		Service: service, Started: make([]uint64, n), Succeeded: make([]uint64, n), Failed: make([]uint64, n), Cancelled: make([]uint64, n), Retries: make([]uint64, n),
		InFlight: make([]uint64, n), Backlog: make([]uint64, n), Latencies: make([][Buckets]uint64, n),
	}
}

// Select executes a query.
func (h *History) Select(q Query) Result {
	h.mu.Lock()
	steps := slices.Clone(h.steps) // their content does not change
	h.mu.Unlock()
	steps = slices.DeleteFunc(steps, func(s step) bool { return s.at < q.From || s.at >= q.To })
	if len(steps) == 0 {
		return Result{}
	}
	first := int((steps[0].at - q.From) / q.Step)
	count := int((steps[len(steps)-1].at-q.From)/q.Step) + 1 - first
	listed := busiest(steps, q)
	series := map[string]*Series{}
	for _, s := range steps {
		i := int((s.at-q.From)/q.Step) - first
		within := map[string][2]uint64{} // gauges of the step: those of unlisted services add up
		for j := range s.services {
			one := &s.services[j]
			if q.Service != "" && one.service != q.Service {
				continue
			}
			name := Other
			if listed[one.service] {
				name = one.service
			}
			to := series[name]
			if to == nil {
				to = newSeries(name, count)
				series[name] = to
			}
			to.add(i, one)
			sum := within[name]
			within[name] = [2]uint64{sum[0] + uint64(one.inFlight), sum[1] + uint64(one.waiting)}
		}
		for name, sum := range within {
			to := series[name]
			to.InFlight[i], to.Backlog[i] = max(to.InFlight[i], sum[0]), max(to.Backlog[i], sum[1])
		}
	}
	r := Result{First: first, Count: count}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		r.Services = append(r.Services, *series[name])
	}
	return r
}

// add adds the counts of a step of the history.
func (s *Series) add(i int, one *serviceStep) {
	s.Started[i] += uint64(one.started)
	s.Succeeded[i] += uint64(one.succeeded)
	s.Failed[i] += uint64(one.failed)
	s.Cancelled[i] += uint64(one.cancelled)
	s.Retries[i] += uint64(one.retries)
	for _, l := range one.latencies {
		s.Latencies[i][l.bucket] += uint64(l.count)
	}
}

// busiest returns the services that a query lists.
func busiest(steps []step, q Query) map[string]bool {
	if q.Service != "" {
		return map[string]bool{q.Service: true}
	}
	events := map[string]uint64{}
	for _, s := range steps {
		for _, one := range s.services {
			events[one.service] += uint64(one.started) + uint64(one.succeeded) + uint64(one.failed) + uint64(one.cancelled) + uint64(one.retries) + uint64(one.inFlight)
		}
	}
	delete(events, Other)
	names := slices.SortedFunc(maps.Keys(events), func(a, b string) int {
		return cmp.Or(cmp.Compare(events[b], events[a]), cmp.Compare(a, b))
	})
	listed := map[string]bool{}
	for _, name := range names[:min(len(names), q.Services)] {
		listed[name] = true
	}
	return listed
}

// Merge adds the results of nodes that answered the same query.
func Merge(results []Result) Result {
	var merged Result
	end := 0
	for _, r := range results {
		if r.Count == 0 {
			continue
		}
		if end == 0 || r.First < merged.First {
			merged.First = r.First
		}
		end = max(end, r.First+r.Count)
	}
	merged.Count = end - merged.First
	series := map[string]*Series{}
	for _, r := range results {
		for i := range r.Services {
			one := &r.Services[i]
			to := series[one.Service]
			if to == nil {
				to = newSeries(one.Service, merged.Count)
				series[one.Service] = to
			}
			to.merge(one, r.First-merged.First)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(series)) {
		merged.Services = append(merged.Services, *series[name])
	}
	return merged
}

// merge adds the series of another node, which begin offset steps later.
func (s *Series) merge(one *Series, offset int) {
	for _, pair := range [][2][]uint64{
		{s.Started, one.Started}, {s.Succeeded, one.Succeeded}, {s.Failed, one.Failed}, {s.Cancelled, one.Cancelled}, {s.Retries, one.Retries},
		{s.InFlight, one.InFlight}, {s.Backlog, one.Backlog},
	} {
		for i, n := range pair[1] {
			pair[0][offset+i] += n
		}
	}
	for i := range one.Latencies {
		for bucket, n := range one.Latencies[i] {
			s.Latencies[offset+i][bucket] += n
		}
	}
}

// Total returns the sum of all services.
func (r *Result) Total() Series {
	total := newSeries("", r.Count)
	for i := range r.Services {
		total.merge(&r.Services[i], 0)
	}
	return *total
}
