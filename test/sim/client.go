package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"platform/internal/fabric"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	pb "platform/proto/service"
)

const (
	clients  = 5
	readers  = 2 // of them
	counters = 4
	ledgers  = 3
	// patience is how long a client tries.
	patience = 6 * time.Second
	forever  = 24 * time.Hour
)

// client is one of those who use the cluster, one operation after the other, each
// through any node.
type client struct {
	sim  *Sim
	id   int
	rng  *rand.Rand
	made int
	open sync.WaitGroup // calls that it has begun and not waited for
}

func (s *Sim) newClient(id int) *client {
	return &client{sim: s, id: id, rng: chance(s.seed, fmt.Sprint("client ", id))}
}

func (c *client) run(ctx context.Context, end time.Time) {
	defer c.open.Wait()
	for time.Now().Before(end) {
		c.one(ctx)
		time.Sleep(time.Duration(c.rng.Int64N(int64(100 * time.Millisecond))))
	}
}

// one does one operation. Some clients do nothing but read.
func (c *client) one(ctx context.Context) {
	what := c.rng.IntN(10)
	if c.id < readers {
		what = 4
	}
	switch what {
	case 0, 1, 2, 3:
		c.add(ctx, counterKey(c.rng.IntN(counters)))
	case 4, 5, 6:
		c.look(ctx, counterKey(c.rng.IntN(counters)))
	case 7:
		c.relay(ctx)
	case 8:
		if c.rng.IntN(2) == 0 {
			c.wait(ctx)
			return
		}
		c.stamp(ctx)
	default:
		c.stay(ctx)
	}
}

// unique is a fresh id for what has a key.
func (c *client) unique(scope, key string) ids.Invocation {
	c.made++
	var u [16]byte
	copy(u[:], fmt.Sprintf("%03d/%08d", c.id, c.made))
	return ids.NewInvocation(ids.Route(scope, key), u)
}

func (c *client) invoke(t machine.Target, input string) *machine.Invoke {
	payload, err := encode(&pb.InputCommandMessage{Value: &pb.Value{Content: []byte(input)}})
	if err != nil {
		panic(err)
	}
	key := t.Key
	if key == "" {
		key = fmt.Sprint("free ", c.id, " ", c.made)
	}
	return &machine.Invoke{
		ID: c.unique(t.Scope, key), Request: c.rng.Uint64() | 1, Target: t, Input: payload,
		Retention: machine.Retention{Completion: forever.Milliseconds(), Journal: forever.Milliseconds()},
	}
}

// ending is what a client knows of an operation.
type ending int

const (
	unknown ending = iota
	done
	failed // certainly without effect
)

func (e ending) String() string { return [...]string{"unknown", "done", "failed"}[e] }

// insist asks one node after the other until one answers. What is asked must be safe to
// repeat.
func insist[T any](ctx context.Context, c *client, ask func(context.Context, *fabric.Directory) (T, error)) (v T, e ending, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	definite := true
	for ctx.Err() == nil {
		n := c.sim.nodes[c.rng.IntN(len(c.sim.nodes))]
		l := n.now()
		if l == nil {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		sent := false
		if v, sent, err = through(ctx, l, ask); err == nil {
			return v, done, nil
		}
		if errors.Is(err, partition.ErrNotFound) {
			return v, done, err
		}
		definite = definite && (!sent || raftgroup.Definite(err))
		pause(ctx, time.Duration(2+c.rng.IntN(30))*time.Millisecond)
	}
	if definite {
		return v, failed, err
	}
	return v, unknown, err
}

// errLost says that the node went away before it answered.
var errLost = errors.New("the node has crashed")

// through asks a node in one of its lives, over the way that clients take.
func through[T any](ctx context.Context, l *life, ask func(context.Context, *fabric.Directory) (T, error)) (v T, sent bool, err error) {
	net, name := l.n.sim.net, l.n.name
	if err := net.pass(ctx, way{"client", name}); err != nil {
		return v, false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	v, err = ask(ctx, l.directory)
	if l.ctx.Err() != nil {
		return v, true, errLost
	}
	if lost := net.pass(ctx, way{name, "client"}); lost != nil {
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

type called struct {
	end partition.Ending
	out machine.Outcome
}

// call invokes a handler and waits for its end.
func (c *client) call(ctx context.Context, inv *machine.Invoke) ([]byte, ending) {
	id := c.sim.owner(inv.ID)
	v, e, err := insist(ctx, c, func(ctx context.Context, d *fabric.Directory) (called, error) {
		end, out, err := d.Partition(id).Call(ctx, inv)
		return called{end, out}, err
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
	inv := c.invoke(machine.Target{Service: "Counter", Key: key, Handler: "add", Type: machine.ObjectExclusive}, string(digits(delta)))
	op := c.sim.history.begin(c.id, key, inv.ID, delta)
	out, e := c.call(ctx, inv)
	c.sim.history.end(op, number(out), e)
}

// look reads a counter where its state is.
func (c *client) look(ctx context.Context, key string) {
	op := c.sim.history.begin(c.id, key, ids.Invocation{}, 0)
	n, e := c.read(ctx, key)
	c.sim.history.end(op, n, e)
}

func (c *client) read(ctx context.Context, key string) (int64, ending) {
	state, e := c.state(ctx, "Counter", key)
	return number(state["n"]), e
}

func (c *client) state(ctx context.Context, service, key string) (map[string][]byte, ending) {
	id := machine.PartitionOf(ids.Route("", key), c.sim.opts.Partitions)
	entries, e, _ := insist(ctx, c, func(ctx context.Context, d *fabric.Directory) ([]machine.StateEntry, error) {
		entries, _, err := d.Partition(id).State(ctx, machine.Object{Service: service, Key: key}, 1<<20)
		return entries, err
	})
	out := map[string][]byte{}
	for _, e := range entries {
		out[string(e.Key)] = e.Value
	}
	return out, e
}

func (c *client) relay(ctx context.Context) {
	c.made++
	name := fmt.Sprintf("relay-%d-%d", c.id, c.made)
	c.sim.history.relayed(name)
	inv := c.invoke(machine.Target{Service: "Relay", Handler: "run"}, name)
	// It takes its time, in which the client goes on.
	own := &client{sim: c.sim, id: c.id, rng: rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64()))}
	c.open.Go(func() {
		out, e := own.call(ctx, inv)
		own.sim.history.relayEnded(name, string(out), e)
	})
}

// stamp starts an entry of a ledger and does not wait for it.
func (c *client) stamp(ctx context.Context) {
	c.made++
	name := fmt.Sprintf("stamp-%d-%d", c.id, c.made)
	inv := c.invoke(machine.Target{Service: "Ledger", Key: ledgerKey(c.rng.IntN(ledgers)), Handler: "stamp", Type: machine.ObjectExclusive}, name)
	c.sim.history.stamped(name, c.submit(ctx, inv))
}

// wait starts a waiter and sends it its signal some time after.
func (c *client) wait(ctx context.Context) {
	c.made++
	name := fmt.Sprintf("waiter-%d-%d", c.id, c.made)
	inv := c.invoke(machine.Target{Service: "Waiter", Handler: "wait"}, name)
	signal := &machine.Signal{
		Target: inv.ID, ID: journal.NotificationID{Name: signalName}, Result: &journal.Result{Value: []byte("now")}, Request: c.rng.Uint64() | 1,
	}
	after := time.Duration(c.rng.Int64N(int64(3 * time.Second)))
	own := &client{sim: c.sim, id: c.id, rng: rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64()))}
	c.open.Go(func() {
		if own.submit(ctx, inv) != done {
			own.sim.history.unsignalled(inv.ID)
		}
		pause(ctx, after)
		owner := own.sim.owner(inv.ID)
		_, e, err := insist(ctx, own, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
			return d.Partition(owner).Operate(ctx, signal)
		})
		if e != done || err != nil {
			own.sim.history.unsignalled(inv.ID)
		}
	})
}

// stay is for the lane, of which few may be inside at a time.
func (c *client) stay(ctx context.Context) {
	inv := c.invoke(machine.Target{Scope: lane, Service: "Lane", Handler: "stay"}, fmt.Sprintf("%dms", c.rng.IntN(600)))
	c.submit(ctx, inv)
}

func (c *client) submit(ctx context.Context, inv *machine.Invoke) ending {
	id := c.sim.owner(inv.ID)
	o, e, err := insist(ctx, c, func(ctx context.Context, d *fabric.Directory) (machine.Outcome, error) {
		return d.Partition(id).Invoke(ctx, inv)
	})
	if e == done && err != nil || e == done && o.Code == machine.Existing && !o.Own {
		c.sim.violate("send to %s (%s): %+v, %v", inv.Target, inv.ID, o, err)
	}
	return e
}

// pass waits until a way is open, and for as long as a message takes.
func (n *network) pass(ctx context.Context, w way) error {
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
