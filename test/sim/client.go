package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"platform/internal/cluster/fabric"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	pb "platform/proto/service"
)

const (
	clients     = 5
	readers     = 2 // of them
	maxUnderWay = 8 // operations of a client in the background
	counters    = 4
	ledgers     = 3
	// retryTimeout limits the retries of an operation.
	retryTimeout = 6 * time.Second
	retention    = 24 * time.Hour
)

// client runs sequential operations, each through any node.
type client struct {
	sim      *Sim
	id       int
	rng      *rand.Rand
	pending  sync.WaitGroup // calls that it has begun and not waited for
	underWay chan struct{}  // one element for each operation in the background
}

func (s *Sim) newClient(id int) *client {
	return &client{sim: s, id: id, rng: newRand(s.seed, fmt.Sprint("client ", id)), underWay: make(chan struct{}, maxUnderWay)}
}

func (c *client) run(ctx context.Context, end time.Time) {
	defer c.pending.Wait()
	for time.Now().Before(end) {
		c.runOne(ctx)
		longest := 100 * time.Millisecond
		if c.sim.suspect.Load() != nil {
			longest /= 5
		}
		time.Sleep(time.Duration(c.rng.Int64N(int64(longest))))
	}
}

// runOne runs one operation. Some clients only read.
func (c *client) runOne(ctx context.Context) {
	kind := c.rng.IntN(12)
	if c.id < readers {
		c.background(func(own *client) { own.readCounter(ctx, counterKey(own.rng.IntN(counters))) })
		return
	}
	if c.sim.suspect.Load() != nil { // adds to be missed by reads from it
		c.background(func(own *client) {
			if own.rng.IntN(4) == 0 {
				own.startStamp(ctx)
				return
			}
			own.add(ctx, counterKey(own.rng.IntN(counters)))
		})
		return
	}
	switch kind {
	case 0, 1, 2, 3:
		c.add(ctx, counterKey(c.rng.IntN(counters)))
	case 4, 5, 6:
		c.readCounter(ctx, counterKey(c.rng.IntN(counters)))
	case 7:
		c.startRelay(ctx)
	case 8:
		switch c.rng.IntN(5) {
		case 0, 1:
			c.startStamp(ctx)
		case 2:
			c.startSleeper(ctx)
		default:
			c.startWaiter(ctx)
		}
	case 9:
		c.startSaga(ctx)
	case 10:
		if c.rng.IntN(2) == 0 {
			c.startFlow(ctx)
			return
		}
		number := c.rng.IntN(tickets)
		c.background(func(own *client) { own.issueTicket(ctx, number) })
	default:
		c.hold(ctx)
	}
}

// split returns a client for another goroutine.
func (c *client) split() *client {
	return &client{sim: c.sim, id: c.id, rng: rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64()))}
}

// number returns a number that no other client has drawn.
func (c *client) number() string { return fmt.Sprintf("%03d/%012x", c.id, c.rng.Uint64()&(1<<48-1)) }

// unique returns a new invocation id with a partition key.
func (c *client) unique(partitionKey uint64) ids.Invocation {
	var u [16]byte
	copy(u[:], c.number())
	return ids.NewInvocation(partitionKey, u)
}

func (c *client) invoke(t machine.Target, input string) *machine.Invoke {
	payload, err := encode(&pb.InputCommandMessage{Value: &pb.Value{Content: []byte(input)}})
	if err != nil {
		panic(err)
	}
	key := t.Key
	if key == "" {
		key = c.number()
	}
	return &machine.Invoke{
		ID: c.unique(ids.Route(t.Scope, key)), Request: c.rng.Uint64() | 1, Target: t, Input: payload,
		Retention: machine.Retention{Completion: retention.Milliseconds(), Journal: retention.Milliseconds()},
	}
}

// moment is what a node knows of the leader of a partition before an ID is first sent. The
// attempts of the request may reach the leader through other nodes.
func (c *client) moment(partition uint32) machine.Moment {
	if l := c.randomNode().running(); l != nil {
		return l.directory.Partition(partition).Moment()
	}
	return machine.Moment{}
}

// outcome is what a client knows about an operation.
type outcome int

const (
	unknown outcome = iota
	done
	failed // without effect
)

func (e outcome) String() string { return [...]string{"unknown", "done", "failed"}[e] }

// retry calls one node after another until one responds. The call must be safe to repeat.
func retry[T any](ctx context.Context, c *client, call func(context.Context, *fabric.Directory) (T, error)) (v T, outcome outcome, err error) {
	return retryOn(ctx, c, c.randomNode, call)
}

func (c *client) randomNode() *node { return c.sim.nodes[c.rng.IntN(len(c.sim.nodes))] }

// suspectNode is the node that may have lost a leadership without knowing, most of the
// time, if there is one.
func (c *client) suspectNode() *node {
	if n := c.sim.suspect.Load(); n != nil && c.rng.IntN(4) > 0 {
		return n
	}
	return c.randomNode()
}

func retryOn[T any](ctx context.Context, c *client, pick func() *node, call func(context.Context, *fabric.Directory) (T, error)) (v T, outcome outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, retryTimeout)
	defer cancel()
	notApplied := true
	for ctx.Err() == nil {
		n := pick()
		l := n.running()
		if l == nil {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		sent := false
		if v, sent, err = callNode(ctx, l, call); err == nil {
			return v, done, nil
		}
		if errors.Is(err, partition.ErrNotFound) {
			return v, done, err
		}
		notApplied = notApplied && (!sent || raftgroup.Definite(err))
		pause(ctx, time.Duration(2+c.rng.IntN(30))*time.Millisecond)
	}
	if notApplied {
		return v, failed, err
	}
	return v, unknown, err
}

// errCrashed means that the node crashed before it responded.
var errCrashed = errors.New("the node crashed")

// callNode calls an incarnation of a node over the simulated network.
func callNode[T any](ctx context.Context, l *incarnation, call func(context.Context, *fabric.Directory) (T, error)) (v T, sent bool, err error) {
	net, name := l.n.sim.net, l.n.name
	if err := net.await(ctx, link{"client", name}); err != nil {
		return v, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	v, err = call(ctx, l.directory)
	if l.ctx.Err() != nil {
		return v, true, errCrashed
	}
	if lost := net.await(ctx, link{name, "client"}); lost != nil {
		return v, true, lost
	}
	return v, true, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

type callResult struct {
	end partition.Ending
	out machine.Outcome
}

// call invokes a handler and waits for its end.
func (c *client) call(ctx context.Context, inv *machine.Invoke) ([]byte, outcome) {
	id := c.sim.owner(inv.ID)
	if inv.IdempotencyKey == nil {
		inv.Since = c.moment(id)
	}
	v, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (callResult, error) {
		end, out, err := d.Partition(id).Call(ctx, inv)
		return callResult{end, out}, err
	})
	if e != done {
		return nil, e
	}
	if err != nil || v.end.Result.Failure != nil {
		c.sim.violate("call of %s (%s) ended with %v, %v", inv.Target, inv.ID, v.end.Result.Failure, err)
		return nil, unknown
	}
	return valueOf(&v.end.Result), done
}

// valueOf is the content of a result.
func valueOf(r *journal.Result) []byte { return r.Value }

func (c *client) add(ctx context.Context, key string) {
	delta := 1 + c.rng.Int64N(1_000_000)
	inv := c.invoke(machine.Target{Service: "Counter", Key: key, Handler: "add", Type: target.ObjectExclusive}, string(digits(delta)))
	op := c.sim.history.begin(c.id, key, inv.ID, delta)
	out, e := c.call(ctx, inv)
	c.sim.history.end(op, number(out), e)
}

// background runs an operation without waiting for it, so that a blocked operation does not block
// others, unless too many are in flight.
func (c *client) background(run func(own *client)) {
	select {
	case c.underWay <- struct{}{}:
	default:
		return
	}
	own := c.split()
	c.pending.Go(func() {
		defer func() { <-c.underWay }()
		run(own)
	})
}

// readCounter reads a counter from the state of its partition.
func (c *client) readCounter(ctx context.Context, key string) {
	op := c.sim.history.begin(c.id, key, ids.Invocation{}, 0)
	n, e := c.read(ctx, key)
	c.sim.history.end(op, n, e)
}

func (c *client) read(ctx context.Context, key string) (int64, outcome) {
	state, e := c.state(ctx, "Counter", key)
	return number(state["n"]), e
}

func (c *client) state(ctx context.Context, service, key string) (map[string][]byte, outcome) {
	id := machine.PartitionOf(ids.Route("", key), c.sim.opts.Partitions)
	entries, e, _ := retryOn(ctx, c, c.suspectNode, func(ctx context.Context, d *fabric.Directory) ([]machine.StateEntry, error) {
		entries, _, err := d.Partition(id).State(ctx, machine.Object{Service: service, Key: key}, 1<<20)
		return entries, err
	})
	out := map[string][]byte{}
	for _, e := range entries {
		out[string(e.Key)] = e.Value
	}
	return out, e
}

func (c *client) startRelay(ctx context.Context) {
	name := "relay-" + c.number()
	c.sim.history.relayStarted(name)
	inv := c.invoke(machine.Target{Service: "Relay", Handler: "run"}, name)
	// It takes long, and the client continues meanwhile.
	own := c.split()
	c.pending.Go(func() {
		out, e := own.call(ctx, inv)
		own.sim.history.relayEnded(name, string(out), e)
	})
}

// startStamp starts an addition to a ledger without waiting for it.
func (c *client) startStamp(ctx context.Context) {
	name := "stamp-" + c.number()
	inv := c.invoke(machine.Target{Service: "Ledger", Key: ledgerKey(c.rng.IntN(ledgers)), Handler: "stamp", Type: target.ObjectExclusive}, name)
	c.sim.history.stampEnded(name, c.submit(ctx, inv))
}

// startSleeper starts a sleeper, which wakes when the machine was suspended.
func (c *client) startSleeper(ctx context.Context) {
	name := "sleeper-" + c.number()
	c.submit(ctx, c.invoke(machine.Target{Service: "Sleeper", Handler: "sleep"}, name))
}

// startWaiter starts a waiter and sends it its signal later.
func (c *client) startWaiter(ctx context.Context) {
	name := "waiter-" + c.number()
	inv := c.invoke(machine.Target{Service: "Waiter", Handler: "wait"}, name)
	signal := &machine.Signal{
		Target: inv.ID, ID: journal.NotificationID{Name: signalName}, Result: &journal.Result{Value: []byte("now")}, Request: c.rng.Uint64() | 1,
	}
	delay := time.Duration(c.rng.Int64N(int64(3 * time.Second)))
	own := c.split()
	c.pending.Go(func() {
		if own.submit(ctx, inv) != done {
			own.sim.history.markUnsignaled(inv.ID)
		}
		pause(ctx, delay)
		owner := own.sim.owner(inv.ID)
		_, e, err := retry(ctx, own, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
			return d.Partition(owner).Operate(ctx, signal)
		})
		if e != done || err != nil {
			own.sim.history.markUnsignaled(inv.ID)
		}
	})
}

func (c *client) submit(ctx context.Context, inv *machine.Invoke) outcome {
	e, _ := c.submitCounted(ctx, inv)
	return e
}

// submitCounted is submit, and returns the number of tries.
func (c *client) submitCounted(ctx context.Context, inv *machine.Invoke) (e outcome, tries int) {
	id := c.sim.owner(inv.ID)
	inv.Since = c.moment(id)
	o, e, err := retry(ctx, c, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
		tries++
		return d.Partition(id).Invoke(ctx, inv)
	})
	if e == done && err != nil || e == done && o.Code == machine.Existing && !o.Own {
		c.sim.violate("send to %s (%s): %+v, %v", inv.Target, inv.ID, o, err)
	}
	return e, tries
}

// await waits until a link is not held, and for the delay of a message.
func (n *network) await(ctx context.Context, w link) error {
	d, _, _ := n.delay(w, false)
	pause(ctx, d)
	for {
		held, changed := n.held(w)
		if !held {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
