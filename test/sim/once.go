package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/machine"
)

// Results that must be the same for all callers: those of requests with the same idempotency key, and the promise of
// a workflow that several of its handlers try to complete.

const (
	tickets    = 6
	flowPrefix = "flow-"
)

// ticketIssue returns a token that another execution would not return.
func (s *Sim) ticketIssue(c *call) ([]byte, error) {
	name := "ticket-" + c.key
	if s.history.attempt(name+" "+c.id.String()) == 1 && newRand(s.seed, name).IntN(3) == 0 {
		return nil, errors.New("fails at first")
	}
	token := c.run(func() []byte { return s.history.execute(name) })
	c.request("Ledger", ledgerKey(0), "stamp", append([]byte("stamp-of-"), token...))
	return token, nil
}

const decision = "decision" // the promise of a workflow

// flowRun waits for the decision and returns it.
func (s *Sim) flowRun(c *call) ([]byte, error) {
	if s.history.attempt(c.id.String()) == 1 && newRand(s.seed, c.key).IntN(3) == 0 {
		return nil, errors.New("fails at first")
	}
	return c.getPromise(decision), nil
}

// flowDecide completes the promise with its input, and returns whether it was the first to do so.
func (s *Sim) flowDecide(c *call) ([]byte, error) {
	if c.completePromise(decision, c.input) {
		return []byte(first), nil
	}
	return []byte(late), nil
}

const (
	first = "first"
	late  = "late"
)

// flowSee waits for the decision beside the run.
func (s *Sim) flowSee(c *call) ([]byte, error) { return c.getPromise(decision), nil }

// commonResult records a result that must be the same for all callers. history.mu covers its fields.
type commonResult struct {
	results []string // as returned to each caller
	winners []string // of a workflow: the deciders that were told to be the first
}

// note changes the record of a common result.
func (h *history) note(name string, change func(*commonResult)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.commonResults == nil {
		h.commonResults = map[string]*commonResult{}
	}
	if h.commonResults[name] == nil {
		h.commonResults[name] = &commonResult{}
	}
	change(h.commonResults[name])
}

// issueTicket requests a ticket with an idempotency key. Before feature level 2 keys with commas led to other
// IDs.
func (c *client) issueTicket(ctx context.Context, number int) {
	key := fmt.Sprintf("order-%d,x", number)
	inv := c.invoke(machine.Target{Service: "Ticket", Key: key, Handler: "issue", Type: target.ObjectShared}, "")
	request := "request,1"
	inv.IdempotencyKey = &request
	inv.ID = ids.OfIdempotent("", inv.Target.Service, key, inv.Target.Handler, request)
	out, e := c.call(ctx, inv)
	if e == done {
		c.sim.history.note(key, func(r *commonResult) { r.results = append(r.results, string(out)) })
	}
}

// startFlow starts a workflow twice, and handlers that complete and read its promise.
func (c *client) startFlow(ctx context.Context) {
	key := flowPrefix + c.number() + ",x"
	c.background(func(own *client) {
		own.sim.history.note(key, func(*commonResult) {})
		for range 2 {
			own.pending.Go(own.later(ctx, time.Second, func(own *client) { own.runFlow(ctx, key) }))
		}
		for range 1 + own.rng.IntN(3) {
			own.pending.Go(own.later(ctx, 2*time.Second, func(own *client) { own.decide(ctx, key) }))
		}
		for range own.rng.IntN(2) {
			own.pending.Go(own.later(ctx, 2*time.Second, func(own *client) { own.see(ctx, key) }))
		}
		own.pending.Wait()
	})
}

// later returns a function that does something after a random time.
func (c *client) later(ctx context.Context, longest time.Duration, do func(own *client)) func() {
	own, delay := c.split(), time.Duration(c.rng.Int64N(int64(longest)))
	return func() {
		pause(ctx, delay)
		do(own)
	}
}

// runFlow requests the run of a workflow, of which there is only one, and waits for its end.
func (c *client) runFlow(ctx context.Context, key string) {
	inv := c.invoke(machine.Target{Service: "Flow", Key: key, Handler: "run", Type: target.WorkflowRun}, "")
	inv.ID = ids.OfWorkflow("", inv.Target.Service, key)
	owner := c.sim.owner(inv.ID)
	o, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
		return d.Partition(owner).Invoke(ctx, inv)
	})
	if e != done || err != nil {
		return
	}
	id := inv.ID
	if !o.ID.IsZero() { // that of a lower feature level
		id = o.ID
	}
	end, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (partition.Ending, error) {
		return d.Partition(owner).Await(ctx, id)
	})
	switch {
	case errors.Is(err, partition.ErrNotFound):
		c.sim.violate("lost: the run of %s was acknowledged", key)
	case e == done && end.Result.Failure != nil:
		c.sim.violate("the run of %s failed: %+v", key, end.Result.Failure)
	case e == done:
		c.sim.history.note(key, func(r *commonResult) { r.results = append(r.results, string(end.Result.Value)) })
	}
}

func (c *client) decide(ctx context.Context, key string) {
	name := "decider-" + c.number()
	out, e := c.call(ctx, c.invoke(machine.Target{Service: "Flow", Key: key, Handler: "decide", Type: target.WorkflowShared}, name))
	if e != done {
		return
	}
	c.sim.history.note(key, func(r *commonResult) {
		if string(out) == first {
			r.winners = append(r.winners, name)
		}
	})
}

func (c *client) see(ctx context.Context, key string) {
	out, e := c.call(ctx, c.invoke(machine.Target{Service: "Flow", Key: key, Handler: "see", Type: target.WorkflowShared}, ""))
	if e == done {
		c.sim.history.note(key, func(r *commonResult) { r.results = append(r.results, string(out)) })
	}
}

// decideAll completes the promises of all workflows, so that they end.
func (s *Sim) decideAll(ctx context.Context, c *client) {
	for _, key := range s.flows() {
		c.decide(ctx, key)
	}
}

// flows returns the keys of the workflows, some of which may not have run.
func (s *Sim) flows() []string {
	return slices.DeleteFunc(s.commonNames(), func(name string) bool { return !strings.HasPrefix(name, flowPrefix) })
}

func (s *Sim) commonNames() []string {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return slices.Sorted(maps.Keys(s.history.commonResults))
}

// checkCommonResults checks that all callers got the same result.
func (s *Sim) checkCommonResults(ctx context.Context, c *client) {
	for i := range tickets {
		c.issueTicket(ctx, i)
	}
	for _, key := range s.flows() {
		c.see(ctx, key)
	}
	for _, name := range s.commonNames() {
		r := s.history.commonResults[name]
		slices.Sort(r.results)
		if all := slices.Compact(slices.Clone(r.results)); len(all) > 1 {
			s.violate("duplicate: %s has the results %q", name, all)
		}
		if len(r.winners) > 1 {
			s.violate("duplicate: %q have completed the promise of %s", r.winners, name)
		}
		if len(r.winners) > 0 && len(r.results) > 0 && r.results[0] != r.winners[0] {
			s.violate("lost: %s has completed the promise of %s, the result is %q", r.winners[0], name, r.results[0])
		}
	}
}
