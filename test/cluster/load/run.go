package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"platform/test/harness"
	"platform/test/history"
)

// Config tells what a run uses.
type Config struct {
	Name    string // of its keys; no two runs on a cluster may have the same
	Nodes   *Nodes
	Results *harness.Recorder // that the services report to
	Probes  int               // keys whose gaps are measured
	Pace    time.Duration     // between two operations of a worker
	// Patience is how long clients repeat a request and wait for what was promised.
	Patience time.Duration
	// Slack is by how much a delayed send or a timer may come early, because clocks of
	// nodes differ.
	Slack time.Duration
	// Readers adds those who read state and outputs past the services, and with strong
	// queries, which older versions of the server cannot answer.
	Readers bool
	// Zombies says that a node may go on that others have given up for dead.
	Zombies bool
}

// worker does one thing over and over.
type worker interface {
	step(ctx context.Context)
}

// checker looks at what workers have done, when all are finished.
type checker interface {
	check(ctx context.Context, c *client) error
}

// Run is load under way.
type Run struct {
	cfg     Config
	workers []worker
	checks  []checker
	probes  []*adder
	clients int

	tally tally
	begin time.Time
	stop  chan struct{}
	wg    sync.WaitGroup
}

// Start begins a run.
func Start(ctx context.Context, cfg Config) *Run {
	r := &Run{cfg: cfg, stop: make(chan struct{}), begin: time.Now()}
	r.addLedgers()
	r.addRegisters()
	r.addInvokers()
	r.addAskers()
	if r.cfg.Readers {
		r.addOutputs()
	}
	for _, w := range r.workers {
		r.wg.Go(func() { r.work(ctx, w) })
	}
	return r
}

func (r *Run) work(ctx context.Context, w worker) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-r.stop:
			return
		}
		w.step(ctx)
		timer.Reset(r.cfg.Pace)
	}
}

// client is a new user at home at a node, -1: that roams.
func (r *Run) client(home int) *client {
	r.clients++
	return &client{nodes: r.cfg.Nodes, tally: &r.tally, home: home, patience: r.cfg.Patience}
}

// resident is a new user at home at one node after the other.
func (r *Run) resident() *client { return r.client(r.clients % len(r.cfg.Nodes.Clients)) }

func (r *Run) name(kind string, i int) string { return fmt.Sprintf("%s-%s%d", r.cfg.Name, kind, i) }

// ledger is a new one, which will be checked.
func (r *Run) ledger(kind string, i int) *ledger {
	l := &ledger{key: r.name(kind, i)}
	r.checks = append(r.checks, l)
	return l
}

func (r *Run) adder(c *client, kind string, i int, repeat bool, add func(context.Context, *adder, string), to ...*ledger) *adder {
	a := &adder{client: c, name: r.name(kind, i), add: add, to: to, repeat: repeat}
	r.workers = append(r.workers, a)
	return a
}

const roaming = -1

// addLedgers adds those who add: each probe to a ledger of its own, the others to
// some that they share.
func (r *Run) addLedgers() {
	for i := range r.cfg.Probes {
		r.probes = append(r.probes, r.adder(r.client(roaming), "probe", i, true, byCall, r.ledger("probe", i)))
	}
	shared := []*ledger{r.ledger("shared", 0), r.ledger("shared", 1)}
	for i := range 4 {
		to := shared[i%len(shared)]
		r.adder(r.resident(), "once", i, false, byCall, to)
		r.adder(r.client(roaming), "send", i, true, bySend, to).rest = 6
	}
	sent := r.ledger("sent", 0)
	for i := range 2 {
		r.adder(r.resident(), "sendonce", i, false, bySend, sent).rest = 3
		r.adder(r.client(roaming), "delay", i, true, byDelay(r.cfg.Slack), sent).rest = 3
	}
	called, told := r.ledger("called", 0), r.ledger("told", 0)
	for i := range 2 {
		r.adder(r.client(roaming), "relay", i, true, byRelay, r.ledger("relay", i), called, told)
	}
}

// addRegisters adds those who read and write, at home at each node and roaming.
func (r *Run) addRegisters() {
	for i := range 2 {
		to := &registers{name: r.name("register", i)}
		if i == 0 && r.readsPast() {
			r.addReaders(to)
		}
		r.checks = append(r.checks, to)
		for j := range 3 {
			c := r.client(roaming)
			if j > 0 {
				c = r.resident()
			}
			r.workers = append(r.workers, &registrar{client: c, id: j, to: to})
		}
	}
}

// addInvokers adds those who wait for invocations.
func (r *Run) addInvokers() {
	rooms := &room{key: r.name("room", 0), results: r.cfg.Results}
	orders := r.ledger("orders", 0)
	r.checks = append(r.checks, rooms)
	steps := history.CheckSteps
	if r.cfg.Zombies {
		steps = history.CheckRecordedSteps
	}
	for kind, invoke := range map[string]func(context.Context, *invoker, string) error{
		"step": byStepping(steps), "room": rooms.enter, "nap": byNapping(r.cfg.Slack), "word": byWord, "order": byOrdering(orders),
	} {
		for i := range 2 {
			w := &invoker{client: r.client(roaming), name: r.name(kind, i), results: r.cfg.Results, invoke: invoke}
			r.workers = append(r.workers, w)
			r.checks = append(r.checks, w)
		}
	}
}

// readsPast reports whether state is to be read past the services.
func (r *Run) readsPast() bool {
	return r.adminKnown() && r.cfg.Readers
}

func (r *Run) adminKnown() bool {
	return !slices.ContainsFunc(r.cfg.Nodes.Clients, func(c *harness.Client) bool { return c.Admin() == "" })
}

// addAskers adds those who ask with SQL, if the nodes' admin API is known.
func (r *Run) addAskers() {
	if !r.adminKnown() {
		return
	}
	for i := range 2 {
		a := &asker{client: r.client(roaming), name: r.name("asked", i)}
		r.workers = append(r.workers, a)
		r.checks = append(r.checks, a)
	}
}

// Acknowledged returns how many requests were answered so far.
func (r *Run) Acknowledged() int {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	return r.tally.ok
}

// Report is what a run came to.
type Report struct {
	OK         int             // requests that were answered
	Excused    int             // requests that failed at a node in trouble
	Failures   []Failure       // requests that should not have failed
	Gaps       []time.Duration // for each probe the longest time without an answer
	Violations []error         // of what was promised
}

// Stop ends the load, waits for what is under way and checks everything. The cluster
// must be whole.
func (r *Run) Stop(ctx context.Context) Report {
	end := time.Now()
	close(r.stop)
	r.wg.Wait()
	report := Report{OK: r.tally.ok, Excused: r.tally.excused}
	for _, p := range r.probes {
		report.Gaps = append(report.Gaps, gap(r.begin, p.acks, end))
	}
	errs := make([]error, len(r.checks))
	for i, c := range r.checks {
		reader := r.client(roaming)
		r.wg.Go(func() { errs[i] = c.check(ctx, reader) })
	}
	r.wg.Wait()
	for _, err := range errs {
		if err != nil {
			report.Violations = append(report.Violations, err)
		}
	}
	report.Failures = r.tally.failures
	return report
}

// gap returns the longest time without an answer from begin to end.
func gap(begin time.Time, acks []time.Time, end time.Time) time.Duration {
	longest, last := time.Duration(0), begin
	for _, at := range acks {
		longest, last = max(longest, at.Sub(last)), at
	}
	return max(longest, end.Sub(last))
}

// Count returns how many violations are of the kind that begins with word.
func (r Report) Count(word string) int {
	n := 0
	for _, err := range r.Violations {
		n += strings.Count(err.Error(), word+": ")
	}
	return n
}

// Err joins everything that went wrong.
func (r Report) Err() error {
	errs := slices.Clone(r.Violations)
	for _, f := range r.Failures {
		errs = append(errs, errors.New("failed request: "+f.String()))
	}
	return errors.Join(errs...)
}
