package backend

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of the pace of a job, in operations per second.
const (
	paceStart = 100
	paceFloor = 20
	paceStep  = 10 // added per window once the limit has been found
	paceSurge = 1.25
	paceDrop  = 0.7

	paceWindow  = 250 * time.Millisecond
	paceSamples = 5 // per window, at least
	// paceSlack is how much longer than twice the usual time operations may take.
	paceSlack = time.Millisecond
)

// pace adapts the rate of a job to what the cluster can take: if operations last much longer than
// they did at a low rate, so do those of others, and the job slows down. The rate grows
// quickly until that happens first, and slowly afterwards.
type pace struct {
	limiter *rate.Limiter

	mu        sync.Mutex // covers the fields below
	took      []time.Duration
	since     time.Time
	usual     time.Duration // at a low rate; 0 if unknown
	congested bool          // has been
}

func newPace() *pace {
	return &pace{limiter: rate.NewLimiter(paceStart, jobParallel), since: time.Now()}
}

// wait blocks until the next operation may start.
func (p *pace) wait(ctx context.Context) error { return p.limiter.Wait(ctx) }

// record adds the duration of an operation that had an effect, and adapts the rate at the end of a window.
func (p *pace) record(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, d)
	if len(p.took) < paceSamples || time.Since(p.since) < paceWindow {
		return
	}
	slices.Sort(p.took)
	median := p.took[len(p.took)/2]
	p.took, p.since = p.took[:0], time.Now()
	p.adapt(median)
}

// adapt changes the rate according to the median duration of a window. At the lowest rate a job
// hardly delays anything, so what operations take there is what they take without it.
func (p *pace) adapt(median time.Duration) {
	now := float64(p.limiter.Limit())
	if p.usual == 0 || median < p.usual || now <= paceFloor {
		p.usual = median
	}
	switch {
	case median > 2*p.usual+paceSlack:
		p.congested = true
		now *= paceDrop
	case p.congested:
		now += paceStep
	default:
		now *= paceSurge
	}
	p.limiter.SetLimit(rate.Limit(min(max(now, paceFloor), jobRate)))
}
