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

// Config configures a run.
type Config struct {
	Name     string // prefix of all keys; unique per cluster
	Nodes    *Nodes
	Results  *harness.Recorder // recorder that the services report to
	Probes   int               // number of keys whose gaps are measured
	Interval time.Duration     // between two operations of a worker
	// RetryTimeout limits the retries of a request and the wait for its effects.
	RetryTimeout time.Duration
	// ClockSlack is how much too early a delayed send or a timer may be, because clocks of
	// nodes differ.
	ClockSlack time.Duration
	// DirectReads adds clients that read state and outputs directly and with strong queries,
	// which older versions of the server do not support.
	DirectReads bool
	// Large is the number of clients that send and receive large bodies.
	Large int
	// Zombies means that a former leader may continue after the others have replaced it.
	Zombies bool
}

// worker repeats one kind of operation.
type worker interface {
	step(ctx context.Context)
}

// checker checks the results of workers after all have finished.
type checker interface {
	check(ctx context.Context, c *client) error
}

// Run is a running load.
type Run struct {
	cfg     Config
	workers []worker
	checks  []checker
	probes  []*adder
	clients int

	counts requestCounts
	large  requestCounts // of large bodies, which a healthy node may refuse
	begin  time.Time
	stop   chan struct{}
	wg     sync.WaitGroup
}

// Start starts a run.
func Start(ctx context.Context, cfg Config) *Run {
	r := &Run{cfg: cfg, stop: make(chan struct{}), begin: time.Now()}
	r.addLedgers()
	r.addRegisters()
	r.addInvokers()
	r.addQueriers()
	if r.cfg.DirectReads {
		r.addOutputs()
	}
	r.addLarge()
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
		timer.Reset(r.cfg.Interval)
	}
}

// newClient returns a client pinned to a node, or load-balanced with anyNode.
func (r *Run) newClient(node int) *client {
	r.clients++
	c := &client{nodes: r.cfg.Nodes, counts: &r.counts, node: node, retryTimeout: r.cfg.RetryTimeout}
	if r.cfg.Large > 0 {
		c.requestTimeout = largeTimeout
	}
	return c
}

// pinnedClient returns a client pinned to a node, in turn.
func (r *Run) pinnedClient() *client { return r.newClient(r.clients % len(r.cfg.Nodes.Clients)) }

func (r *Run) name(kind string, i int) string { return fmt.Sprintf("%s-%s%d", r.cfg.Name, kind, i) }

// newLedger returns a ledger that will be checked.
func (r *Run) newLedger(kind string, i int) *ledger {
	l := &ledger{service: "Ledger", key: r.name(kind, i)}
	r.checks = append(r.checks, l)
	return l
}

func (r *Run) addAdder(c *client, kind string, i int, repeat bool, add func(context.Context, *adder, string), to ...*ledger) *adder {
	a := &adder{client: c, name: r.name(kind, i), addOne: add, ledgers: to, retries: repeat}
	r.workers = append(r.workers, a)
	return a
}

const anyNode = -1

// addLedgers adds workers that add to ledgers: each probe has its own ledger, the others
// share some.
func (r *Run) addLedgers() {
	for i := range r.cfg.Probes {
		r.probes = append(r.probes, r.addAdder(r.newClient(anyNode), "probe", i, true, addByCall, r.newLedger("probe", i)))
	}
	shared := []*ledger{r.newLedger("shared", 0), r.newLedger("shared", 1)}
	for i := range 4 {
		to := shared[i%len(shared)]
		r.addAdder(r.pinnedClient(), "once", i, false, addByCall, to)
		r.addAdder(r.newClient(anyNode), "send", i, true, addBySendInTurn, to).skip = 6
	}
	sent := r.newLedger("sent", 0)
	for i := range 2 {
		r.addAdder(r.pinnedClient(), "sendonce", i, false, addBySend, sent).skip = 3
		r.addAdder(r.newClient(anyNode), "delay", i, true, addByDelayedSend(r.cfg.ClockSlack), sent).skip = 3
	}
	called, sentTo := r.newLedger("called", 0), r.newLedger("relayed", 0)
	for i := range 2 {
		r.addAdder(r.newClient(anyNode), "relay", i, true, addByRelay, r.newLedger("relay", i), called, sentTo)
	}
}

// addRegisters adds workers that read and write registers, pinned and load-balanced.
func (r *Run) addRegisters() {
	for i := range 2 {
		registers := &registers{name: r.name("register", i)}
		if i == 0 && r.readsDirectly() {
			r.addDirectReaders(registers)
		}
		r.checks = append(r.checks, registers)
		for j := range 3 {
			c := r.newClient(anyNode)
			if j > 0 {
				c = r.pinnedClient()
			}
			r.workers = append(r.workers, &registerClient{client: c, id: j, registers: registers})
		}
	}
}

// addInvokers adds workers that wait for invocations.
func (r *Run) addInvokers() {
	sections := &sectionWorker{key: r.name("section", 0), results: r.cfg.Results}
	orders := r.newLedger("orders", 0)
	r.checks = append(r.checks, sections)
	steps := history.CheckSteps
	if r.cfg.Zombies {
		steps = history.CheckRecordedSteps
	}
	for kind, invoke := range map[string]func(context.Context, *invoker, string) error{
		"step": invokeSteps(steps), "section": sections.work, "sleep": invokeSleep(r.cfg.ClockSlack), "awakeable": invokeAwakeable, "order": invokeWorkflow(orders),
	} {
		for i := range 2 {
			w := &invoker{client: r.newClient(anyNode), name: r.name(kind, i), results: r.cfg.Results, invoke: invoke}
			r.workers = append(r.workers, w)
			r.checks = append(r.checks, w)
		}
	}
}

// readsDirectly reports whether state is also read directly.
func (r *Run) readsDirectly() bool {
	return r.adminKnown() && r.cfg.DirectReads
}

func (r *Run) adminKnown() bool {
	return !slices.ContainsFunc(r.cfg.Nodes.Clients, func(c *harness.Client) bool { return c.Admin() == "" })
}

// addQueriers adds workers that query with SQL, if the admin addresses are known.
func (r *Run) addQueriers() {
	if !r.adminKnown() {
		return
	}
	for i := range 2 {
		a := &querier{client: r.newClient(anyNode), name: r.name("asked", i)}
		r.workers = append(r.workers, a)
		r.checks = append(r.checks, a)
	}
}

// Succeeded returns the number of successful requests so far, and separately that of calls with large bodies.
func (r *Run) Succeeded() (small, large int) { return r.counts.succeeded(), r.large.succeeded() }

// Report is the result of a run.
type Report struct {
	OK         int             // successful requests
	Tolerated  int             // requests that failed at a faulty node
	Failures   []Failure       // requests that failed at a healthy node
	Gaps       []time.Duration // longest time without a response, per probe
	Longest    Gap             // of all probes
	Violations []error         // violated guarantees

	LargeOK, LargeRepeated int // large calls: successful and repeated requests
}

// Stop stops the load, waits for pending requests and runs all checks. The cluster must
// have recovered.
func (r *Run) Stop(ctx context.Context) Report {
	end := time.Now()
	close(r.stop)
	r.wg.Wait()
	report := Report{
		OK: r.counts.ok, Tolerated: r.counts.tolerated,
		LargeOK: r.large.ok, LargeRepeated: r.large.tolerated + len(r.large.failures),
	}
	for _, p := range r.probes {
		g := gap(r.begin, p.acks, end)
		report.Gaps = append(report.Gaps, g.Length)
		if g.Length > report.Longest.Length {
			report.Longest = g
			report.Longest.Key = p.ledgers[0].key
		}
	}
	errs := make([]error, len(r.checks))
	for i, c := range r.checks {
		reader := r.newClient(anyNode)
		reader.requestTimeout = r.cfg.RetryTimeout // reads wait for the additions that are queued before them
		r.wg.Go(func() { errs[i] = c.check(ctx, reader) })
	}
	r.wg.Wait()
	for _, err := range errs {
		if err != nil {
			report.Violations = append(report.Violations, err)
		}
	}
	report.Failures = r.counts.failures
	return report
}

// Gap is a time without a response for a key.
type Gap struct {
	Length time.Duration
	Until  time.Time
	Key    string
}

// String formats the gap so that it can be found in the logs of the nodes.
func (g Gap) String() string {
	return fmt.Sprintf("%s (until %s, %s)", g.Length.Round(time.Millisecond), g.Until.Format("15:04:05.000"), g.Key)
}

// gap returns the longest time without an acknowledgement between begin and end.
func gap(begin time.Time, acks []time.Time, end time.Time) (longest Gap) {
	last := begin
	for _, at := range append(acks[:len(acks):len(acks)], end) {
		if length := at.Sub(last); length > longest.Length {
			longest = Gap{Length: length, Until: at}
		}
		last = at
	}
	return longest
}

// Count returns the number of violations of a kind, the prefix of their messages.
func (r Report) Count(kind string) int {
	n := 0
	for _, err := range r.Violations {
		n += strings.Count(err.Error(), kind+": ")
	}
	return n
}

// Err joins all violations and failures.
func (r Report) Err() error {
	errs := slices.Clone(r.Violations)
	for _, f := range r.Failures {
		errs = append(errs, errors.New("failed request: "+f.String()))
	}
	return errors.Join(errs...)
}
