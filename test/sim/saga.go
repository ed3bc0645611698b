package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Sagas take steps and undo them when they are cancelled. Operators cancel, kill, pause, resume, restart and
// purge them. Most sagas end only by one of these.

// untilCancelled is longer than all suspensions together.
const untilCancelled = 1000 * time.Hour

// undone is the failure of a saga that was cancelled.
var undone = &terminal{409, "undone"}

// sagaRun writes to ledgers and sleeps, and notes in a ledger if it is cancelled meanwhile.
func (s *Sim) sagaRun(c *call) ([]byte, error) {
	name, id := string(c.input), c.id.String()
	known, _ := s.history.sagaOf(c.id)
	c.copied = known.partial
	rng := newRand(s.seed, "saga "+name)
	nap := untilCancelled
	if rng.IntN(4) == 0 {
		nap = time.Duration(rng.Int64N(int64(2 * time.Second)))
	}
	if rng.IntN(4) == 0 && s.history.attempt(id) == 1 {
		return nil, errors.New("fails at first")
	}
	c.send("Ledger", ledgerKey(rng.IntN(ledgers)), "stamp", []byte(id+"/begun"))
	at := number(c.run(func() []byte { return digits(s.now().Add(nap).UnixMilli()) }))
	cancelled := c.requestUnlessCancelled("Ledger", ledgerKey(rng.IntN(ledgers)), "stamp", []byte(id+"/called"))
	if !cancelled {
		cancelled = c.sleepUnlessCancelled(at)
	}
	if most := s.history.cancelsOf(c.id); c.cancels > most {
		s.violate("%s received %d cancels, %d were sent", id, c.cancels, most)
	}
	if cancelled {
		c.send("Ledger", ledgerKey(rng.IntN(ledgers)), "stamp", []byte(id+"/undone"))
		return nil, undone
	}
	return []byte(id), nil
}

// saga records an invocation of Saga/run and the requests that concern it. history.mu covers its fields.
type saga struct {
	id        ids.Invocation
	submitted outcome
	result    *journal.Result // returned to its caller, nil: none
	cancels   int             // requested, those of the saga that it was restarted from included
	killed    bool            // requested
	purged    bool            // requested
	gone      bool            // a purge was acknowledged
	// cancelled means that a cancel was acknowledged, and that no pause was requested afterwards.
	cancelled bool
	// late means that a request has no response, or was sent several times and is no cancel, which takes
	// effect once: it may still take effect.
	late bool
	// repeated means that its start was requested several times, so that a request may still arrive. If the saga
	// were purged before, it would start again.
	repeated bool
	// partial means that it was restarted with commands of another saga.
	partial bool
}

func (h *history) addSaga(g *saga) *saga {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sagas = append(h.sagas, g)
	return g
}

// updateSaga changes a saga.
func (h *history) updateSaga(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// sagaOf returns a copy of the saga with an ID.
func (h *history) sagaOf(id ids.Invocation) (g saga, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.sagas, func(g *saga) bool { return g.id == id }); i >= 0 {
		return *h.sagas[i], true
	}
	return g, false
}

func (h *history) cancelsOf(id ids.Invocation) int {
	g, _ := h.sagaOf(id)
	return g.cancels
}

// startSaga starts a saga, of which some begin later, and operates on it.
func (c *client) startSaga(ctx context.Context) {
	inv := c.invoke(machine.Target{Service: "Saga", Handler: "run"}, "saga-"+c.number())
	if c.rng.IntN(4) == 0 {
		inv.Delay = c.rng.Int64N(2000)
	}
	c.background(func(own *client) {
		g := c.sim.history.addSaga(&saga{id: inv.ID})
		submitted, tries := own.submitCounted(ctx, inv)
		c.sim.history.updateSaga(func() { g.submitted, g.repeated = submitted, tries > 1 })
		if waiting := own.split(); submitted == done && own.rng.IntN(2) == 0 {
			own.pending.Go(func() { waiting.awaitSaga(ctx, g) })
		}
		for range own.rng.IntN(6) {
			pause(ctx, time.Duration(own.rng.Int64N(int64(time.Second))))
			own.operateOn(ctx, g)
		}
		own.pending.Wait()
	})
}

// awaitSaga waits for the result of a saga for as long as a client retries.
func (c *client) awaitSaga(ctx context.Context, g *saga) {
	owner := c.sim.owner(g.id)
	end, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (partition.Ending, error) {
		return d.Partition(owner).Await(ctx, g.id)
	})
	if e == done && err == nil {
		c.sim.history.updateSaga(func() { g.result = &end.Result })
	}
}

// operateOn sends a random operation.
func (c *client) operateOn(ctx context.Context, g *saga) {
	h := c.sim.history
	switch n := c.rng.IntN(12); {
	case n < 2:
		c.cancel(ctx, g)
	case n == 2:
		h.updateSaga(func() { g.killed = true })
		c.operate(ctx, g, &machine.Kill{Target: g.id})
	case n < 7:
		c.pauseSaga(ctx, g)
	case n < 10:
		c.operate(ctx, g, &machine.Resume{Target: g.id})
	case n == 10:
		c.restart(ctx, g)
	case !g.repeated:
		h.updateSaga(func() { g.purged = true })
		if o, e := c.operate(ctx, g, &machine.Purge{Target: g.id}); e == done && o.Code == machine.OK {
			h.updateSaga(func() { g.gone = true })
		}
	}
}

// operate sends an operation until it has a response.
func (c *client) operate(ctx context.Context, g *saga, op machine.Operation) (machine.Outcome, outcome) {
	owner, tries := c.sim.owner(g.id), 0
	o, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
		tries++
		return d.Partition(owner).Operate(ctx, op)
	})
	if _, once := op.(*machine.Signal); e != done || tries > 1 && !once {
		c.sim.history.updateSaga(func() { g.late = true })
	}
	c.sim.trace.add("client: %T of %s: %s, outcome %v, %v", op, g.id, e, o.Code, err)
	return o, e
}

func (c *client) cancel(ctx context.Context, g *saga) {
	c.sim.history.updateSaga(func() { g.cancels++ })
	o, e := c.operate(ctx, g, &machine.Signal{
		Target: g.id, ID: journal.NumberedSignal(journal.CancelSignal), Request: c.rng.Uint64() | 1,
	})
	if e == done && o.Code == machine.OK {
		c.sim.history.updateSaga(func() { g.cancelled = true })
	}
}

// pauseSaga pauses a saga. While it is paused, its handler must not add commands.
func (c *client) pauseSaga(ctx context.Context, g *saga) {
	c.sim.history.updateSaga(func() { g.cancelled = false })
	o, e := c.operate(ctx, g, &machine.Pause{Target: g.id, Reason: "simulated"})
	if e != done || o.Code != machine.OK || c.rng.IntN(2) == 0 {
		return
	}
	before := c.find(ctx, g.id)
	pause(ctx, time.Duration(c.rng.Int64N(int64(time.Second))))
	after := c.find(ctx, g.id)
	if known, _ := c.sim.history.sagaOf(g.id); before == nil || known.late || before.Status != machine.Paused {
		return
	}
	if after != nil && (after.Status != machine.Paused || after.Commands != before.Commands) {
		c.sim.violate("%s was paused with %d commands, later it is %v with %d", g.id, before.Commands, after.Status, after.Commands)
	}
}

// find reads an invocation, nil if it could not be read.
func (c *client) find(ctx context.Context, id ids.Invocation) *machine.Invocation {
	owner := c.sim.owner(id)
	inv, _, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (*machine.Invocation, error) {
		return d.Partition(owner).Find(ctx, id)
	})
	if err != nil {
		return nil
	}
	return inv
}

// restart starts a new saga from some of the journal of one that has ended.
func (c *client) restart(ctx context.Context, g *saga) {
	id := c.unique(g.id.PartitionKey())
	known, _ := c.sim.history.sagaOf(g.id)
	from := uint32(0)
	if c.rng.IntN(2) == 0 {
		from = c.rng.Uint32N(8)
	}
	next := c.sim.history.addSaga(&saga{id: id, cancels: known.cancels, partial: from > 0})
	o, e := c.operate(ctx, g, &machine.Restart{Target: g.id, New: id, From: from})
	c.sim.history.updateSaga(func() {
		if next.submitted = e; e == done && o.Code != machine.OK {
			next.submitted = failed
			if g.late { // an earlier try may have effect later
				next.submitted = unknown
			}
		}
	})
}

// releaseSagas ends the sagas that wait for it. The others must end by themselves.
func (s *Sim) releaseSagas(ctx context.Context, c *client) {
	s.history.mu.Lock()
	all := slices.Clone(s.history.sagas)
	s.history.mu.Unlock()
	for _, g := range all {
		if g.cancelled && !g.late {
			continue
		}
		if inv := c.find(ctx, g.id); inv != nil && inv.Status == machine.Paused && g.cancels == 0 {
			c.operate(ctx, g, &machine.Resume{Target: g.id})
		}
		c.cancel(ctx, g)
	}
}

// checkSagas checks the sagas, which have all ended, and their entries in the ledgers.
func (s *Sim) checkSagas(ctx context.Context, c *client, ledger []string) {
	count := map[string]int{}
	for _, e := range ledger {
		count[e]++
	}
	for _, g := range s.history.sagas {
		owner := s.owner(g.id)
		inv, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (*machine.Invocation, error) {
			return d.Partition(owner).Find(ctx, g.id)
		})
		id := g.id.String()
		switch {
		case e != done:
			s.violate("stuck: %s cannot be read: %v", id, err)
		case errors.Is(err, partition.ErrNotFound):
			if g.submitted == done && !g.purged {
				s.violate("lost: %s was acknowledged", id)
			}
		case g.gone:
			s.violate("%s was purged and is %v", id, inv.Status)
		case g.submitted == failed:
			s.violate("%s was rejected and took effect", id)
		case inv.Status != machine.Completed:
			s.violate("stuck: %s is %v", id, inv.Status)
		default:
			s.checkSaga(g, inv, count)
		}
	}
}

func (s *Sim) checkSaga(g *saga, inv *machine.Invocation, ledger map[string]int) {
	id := g.id.String()
	begun, called, undid := ledger[id+"/begun"], ledger[id+"/called"], ledger[id+"/undone"]
	failure := inv.Result.Failure
	switch {
	case g.partial && (failure == nil || failure.Message == undone.message): // has results and entries of the other
	case failure == nil:
		if string(inv.Result.Value) != id {
			s.violate("%s returned %q", id, inv.Result.Value)
		}
		if begun != 1 || called != 1 || undid != 0 {
			s.violate("%s succeeded with %d, %d and %d entries", id, begun, called, undid)
		}
	case failure.Message == undone.message:
		if g.cancels == 0 {
			s.violate("%s was cancelled without a request", id)
		}
		if begun != 1 || undid != 1 {
			s.violate("%s was cancelled with %d, %d and %d entries", id, begun, called, undid)
		}
	case inv.Killed && g.killed:
	case inv.Killed && g.cancels > 0: // before it started
		if begun+called+undid > 0 || s.history.attempts[id] > 0 {
			s.violate("%s started and was cancelled without its handler", id)
		}
	default:
		s.violate("%s failed: %+v", id, failure)
	}
	if g.result != nil && (string(g.result.Value) != string(inv.Result.Value) || (g.result.Failure == nil) != (failure == nil)) {
		s.violate("%s returned %+v to its caller and has %+v", id, g.result, inv.Result)
	}
}
