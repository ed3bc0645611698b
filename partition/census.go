package partition

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"platform/flowcontrol"
	"platform/internal/metrics"
	"platform/internal/stats"
	"platform/partition/listing"
	"platform/partition/machine"
	"platform/partition/store"
)

const (
	// The partitions are counted again when metrics are read, censusPause after the last count and
	// after censusShare times as long as it took, so that counting uses at most 2 % of a core.
	censusPause = 10 * time.Second
	censusShare = 50
	// maxCensusRules bounds the rules that metrics distinguish.
	maxCensusRules = 200
)

// Census counts the unfinished invocations and what is used of limits, for metrics. Nothing of it is
// maintained when commands are applied: while metrics are read, the tables of the partitions that this
// node leads are read in the background.
type Census struct {
	replicas func() iter.Seq[*Partition]
	known    func() []string // services that had invocations here
	read     chan struct{}   // capacity 1: metrics were read
	pause    time.Duration

	mu       sync.Mutex                        // covers the fields below
	services serviceCounts                     // nil before the first count
	limits   map[flowcontrol.Pattern]limitLoad // of the rules
}

// serviceCounts are the numbers of invocations by status of some services.
type serviceCounts map[string]*[listing.Statuses]int

// add counts an invocation. It keeps no reference to the name, which may be in memory of the database.
func (c serviceCounts) add(service string, status listing.Status) {
	counts := c[service]
	if counts == nil {
		if len(c) >= stats.MaxServices {
			service = stats.OtherLabel
		}
		if counts = c[service]; counts == nil {
			counts = new([listing.Statuses]int)
			c[strings.Clone(service)] = counts
		}
	}
	counts[status]++
}

// limitLoad is how much of a rule is used.
type limitLoad struct {
	usage   float64 // of the counter that is closest to its limit, 1 if it is reached
	waiting uint64
}

// NewCensus returns a census of the partitions that are led here. The metrics of known services are 0 if they
// have no unfinished invocations.
func NewCensus(replicas func() iter.Seq[*Partition], known func() []string) *Census {
	return &Census{replicas: replicas, known: known, read: make(chan struct{}, 1), pause: censusPause}
}

// Run counts until ctx ends.
func (c *Census) Run(ctx context.Context) error {
	for {
		select {
		case <-c.read:
		case <-ctx.Done():
			return nil
		}
		begin := time.Now()
		c.count(ctx)
		select {
		case <-time.After(max(c.pause, censusShare*time.Since(begin))):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *Census) count(ctx context.Context) {
	services := serviceCounts{}
	for _, service := range c.known() {
		services[service] = new([listing.Statuses]int)
	}
	c.mu.Lock()
	for service := range c.services {
		if len(services) < stats.MaxServices {
			services[service] = new([listing.Statuses]int)
		}
	}
	c.mu.Unlock()
	limits := map[flowcontrol.Pattern]limitLoad{}
	for p := range c.replicas() {
		err := p.countUnfinished(ctx, services.add)
		if err == nil && p.cfg.Flow.Enable {
			err = p.measureLimits(ctx, limits)
		}
		if err != nil && !errors.Is(err, ErrNotLeader) {
			if ctx.Err() == nil {
				p.log.Warn("invocations could not be counted for metrics", "err", err)
			}
			return
		}
	}
	c.mu.Lock()
	c.services, c.limits = services, limits
	c.mu.Unlock()
}

// countUnfinished calls add for each invocation that has not completed.
func (p *Partition) countUnfinished(ctx context.Context, add func(service string, status listing.Status)) error {
	l, err := p.leader()
	if err != nil {
		return err
	}
	r := listReader{l: l}
	return eachPage(ctx, func(from store.Place) (store.Place, error) {
		return readPage(p.tables, from, false, func(inv *machine.Invocation) {
			add(inv.Target.Service, listing.StatusOf(inv, r.liveOf(inv)))
		})
	})
}

// measureLimits adds the use of the counters of the partition to that of the rules that limit them.
func (p *Partition) measureLimits(ctx context.Context, limits map[flowcontrol.Pattern]limitLoad) error {
	for u, err := range p.usages(ctx) {
		if err != nil {
			return err
		}
		if u.Rule == nil || u.Rule.Limits.Concurrency == 0 {
			continue
		}
		load := limits[u.Rule.Pattern]
		load.usage = max(load.usage, float64(u.Running)/float64(u.Rule.Limits.Concurrency))
		load.waiting += u.Waiting
		limits[u.Rule.Pattern] = load
	}
	return nil
}

var (
	descInvocations = metrics.Desc("invocations", "Unfinished invocations of the partitions led by this node, of the services that have or had some. Counted in the background while metrics are read.", "service", "status")
	descLimitUsage  = metrics.Desc("limit_usage", "Share of a concurrency limit that is in use, of the counter that is closest to the limit of a rule, for the rules whose scopes have invocations.", "rule")
	descLimitWaits  = metrics.Desc("limit_waiting_invocations", "Invocations in the queues of scopes and limit keys that a rule limits.", "rule")
)

// Collector returns the metrics of the last count, and has them counted again.
func (c *Census) Collector() prometheus.Collector {
	return metrics.NewCollector(func(out metrics.Values) {
		signal(c.read)
		c.mu.Lock()
		defer c.mu.Unlock()
		for service, counts := range c.services {
			for status := range listing.Statuses {
				if s := listing.Status(status); s != listing.Completed && s.String() != "" {
					out.Gauge(descInvocations, float64(counts[s]), service, s.String())
				}
			}
		}
		c.collectLimits(out)
	}, descInvocations, descLimitUsage, descLimitWaits)
}

// collectLimits collects the rules of which most is used, and the others together.
func (c *Census) collectLimits(out metrics.Values) {
	rules := slices.SortedFunc(maps.Keys(c.limits), func(a, b flowcontrol.Pattern) int {
		x, y := c.limits[a], c.limits[b]
		return cmp.Or(cmp.Compare(y.usage, x.usage), cmp.Compare(y.waiting, x.waiting), cmp.Compare(a.String(), b.String()))
	})
	var rest limitLoad
	for i, rule := range rules {
		load := c.limits[rule]
		if i < maxCensusRules {
			collectLimit(out, rule.String(), load)
			continue
		}
		rest.usage = max(rest.usage, load.usage)
		rest.waiting += load.waiting
	}
	if len(rules) > maxCensusRules {
		collectLimit(out, stats.OtherLabel, rest)
	}
}

func collectLimit(out metrics.Values, rule string, load limitLoad) {
	out.Gauge(descLimitUsage, load.usage, rule)
	out.Gauge(descLimitWaits, float64(load.waiting), rule)
}
