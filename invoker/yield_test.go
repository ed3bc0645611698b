package invoker

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/ids"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// Frames of a handler that has executed its run and waits for the sleep after it.
const (
	runResult  = "0005000000000005" + "0801720131"
	suspendOn2 = "0001000000000006" + "0a0102120101"
	sleepAfter = "040c000000000009" + "0880d095ffbc315802"
)

// operate applies an operator's request.
func (o *offline) operate(c machine.Command) machine.Outcome {
	answer := make(chan machine.Outcome, 1)
	o.shard.submit(c, func(out machine.Outcome, err error) {
		if err != nil {
			o.t.Error(err)
		}
		answer <- out
	})
	out := <-answer
	synctest.Wait()
	return out
}

func TestAPauseStoresTheResultOfTheCurrentRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(2, metadata.Pause), func(w *wire) {
			w.ok()
			w.send(t, beginRun)
		}, answers(t))
		defer o.close()
		id, ended := o.shard.call(greeter, 1, "")
		time.Sleep(time.Second)
		out := o.operate(&machine.Pause{Target: id})
		require.Equal(t, machine.Outcome{Status: machine.Invoked}, out)
		w := o.wire(0)
		require.True(t, w.is(&w.ended), "asked to suspend")
		require.False(t, w.is(&w.reset))

		time.Sleep(5 * time.Minute) // the run takes that long
		w.send(t, runResult+sleepAfter+suspendOn2)
		synctest.Wait()
		require.Equal(t, machine.Paused, o.shard.record(id).Status)
		require.Equal(t, []journal.Type{journal.Input, journal.Run, journal.RunCompletion, journal.Sleep}, o.shard.journal(id))
		require.Empty(t, o.gaps())
		require.Zero(t, o.iv.slots.used)

		o.operate(&machine.Resume{Target: id})
		require.Nil(t, receive(t, ended).Failure)
	})
}

func TestAHandlerMayEndDuringAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(2, metadata.Pause), func(w *wire) {
			w.ok()
			w.send(t, beginRun)
		})
		defer o.close()
		id, ended := o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.operate(&machine.Pause{Target: id})
		o.wire(0).send(t, runResult+outputHi+end)
		require.Nil(t, receive(t, ended).Failure)
		require.False(t, o.shard.record(id).Pausing)
	})
}

func TestTheAbortTimeoutEndsAPausingAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(0, metadata.Kill), func(w *wire) {
			w.ok()
			w.send(t, beginRun)
		})
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.operate(&machine.Pause{Target: id})
		time.Sleep(9 * time.Minute)
		o.wire(0).send(t, "0411000000000005"+"5802620172") // another run: it is alive
		time.Sleep(9 * time.Minute)
		require.False(t, o.wire(0).is(&o.wire(0).reset))
		require.Equal(t, machine.Invoked, o.shard.record(id).Status)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).reset))
		inv := o.shard.record(id)
		require.Equal(t, machine.Paused, inv.Status)
		require.Equal(t, "RT0001", inv.Failure.ErrorCode)
		require.Empty(t, o.gaps())
	})
}

func TestAFailedPausingAttemptIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(0, metadata.Kill), func(w *wire) { w.ok() })
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.operate(&machine.Pause{Target: id})
		o.wire(0).send(t, frame(0x0002, "08f403"+"12"+length("boom")))
		time.Sleep(time.Hour)
		synctest.Wait()
		inv := o.shard.record(id)
		require.Equal(t, machine.Paused, inv.Status)
		require.Equal(t, "boom", inv.Failure.Message)
		require.Empty(t, o.gaps())
	})
}

// A pause takes effect immediately if there is no attempt that has reached the endpoint.
func TestAPauseWithoutAnOpenAttempt(t *testing.T) {
	begin := map[string]func(t *testing.T, o *offline) ids.Invocation{
		"backing off": func(t *testing.T, o *offline) ids.Invocation {
			id, _ := o.shard.call(greeter, 1, "")
			synctest.Wait()
			return id
		},
		"waiting for a slot": func(t *testing.T, o *offline) ids.Invocation {
			w := waiter{s: o.session}
			o.iv.slots.limit = 1
			o.iv.slots.acquire(greeterQueue, false, &w)
			t.Cleanup(func() { o.iv.releaseSlot(w.share) })
			id, _ := o.shard.call(greeter, 1, "")
			synctest.Wait()
			return id
		},
		"waiting without a record": func(t *testing.T, o *offline) ids.Invocation {
			w := waiter{s: o.session}
			o.iv.slots.limit, o.iv.slots.maxRecords = 1, 0
			o.iv.slots.acquire(greeterQueue, false, &w)
			t.Cleanup(func() { o.iv.releaseSlot(w.share) })
			o.shard.call(greeter, 2, "")
			id, _ := o.shard.call(greeter, 1, "")
			synctest.Wait()
			return id
		},
		"reading the journal": func(t *testing.T, o *offline) ids.Invocation {
			gates := &gatedLoads{o.shard, make(chan chan struct{}), make(chan chan struct{})}
			o.session.part = gates
			id, _ := o.shard.call(counter("k"), 1, "")
			synctest.Wait()
			time.AfterFunc(time.Hour, func() {
				close(<-gates.before)
				close(<-gates.after)
			})
			return id
		},
	}
	for name, f := range begin {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffline(t, policy(0, metadata.Kill), fails(t))
				defer o.close()
				id := f(t, o)
				o.operate(&machine.Pause{Target: id})
				synctest.Wait()
				inv := o.shard.record(id)
				require.Equal(t, machine.Paused, inv.Status)
				require.Equal(t, name == "backing off", inv.Failure != nil)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				require.Empty(t, o.gaps())
				_, known := o.iv.Status(id)
				require.False(t, known)
			})
		})
	}
}

func TestResumingRevokesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(0, metadata.Kill), func(w *wire) { w.ok() }, answers(t))
		defer o.close()
		id, ended := o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.operate(&machine.Pause{Target: id})
		o.operate(&machine.Resume{Target: id})
		fails(t)(o.wire(0))
		require.Nil(t, receive(t, ended).Failure)
		require.Len(t, o.gaps(), 1)
	})
}

// The pause is requested from one leader and executed by its successor.
func TestANewLeaderContinuesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, policy(0, metadata.Kill), func(w *wire) { w.ok() })
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		o.session.Close()
		o.operate(&machine.Pause{Target: id})
		inv := o.shard.record(id)
		require.True(t, inv.Pausing)
		o.session = o.iv.openSession(o.shard)
		o.shard.session = o.session
		o.session.Run(machine.RunOf(&inv))
		synctest.Wait()
		require.Equal(t, machine.Paused, o.shard.record(id).Status)
		require.Empty(t, o.gaps())
		require.Zero(t, o.iv.slots.used)
	})
}

var greeterQueue = flowcontrol.QueueKey{Service: "Greeter"}

// rejectOnce is a partition that refuses the first step of a kind.
type rejectOnce struct {
	*shard
	kind machine.StepKind
	done *bool
}

func (r rejectOnce) Propose(p *machine.Progress, done func(machine.Outcome, error)) {
	if !*r.done && p.Steps[0].Kind == r.kind {
		*r.done = true
		done(machine.Outcome{Code: machine.Invalid}, nil)
		return
	}
	r.shard.Propose(p, done)
}

func TestARefusedPauseIsProposedAgain(t *testing.T) {
	for _, kind := range []machine.StepKind{machine.StepPause, machine.StepYield} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 1
			if kind == machine.StepYield {
				attempts = 3 // it is backing off when the pause is requested
			}
			o := newOffline(t, policy(attempts, metadata.Pause), func(w *wire) { w.recv.End(io.ErrUnexpectedEOF) })
			defer o.close()
			rejected := false
			o.session.part = rejectOnce{o.shard, kind, &rejected}
			id, _ := o.shard.call(greeter, 1, "")
			synctest.Wait()
			if kind == machine.StepYield {
				o.operate(&machine.Pause{Target: id})
			}
			time.Sleep(time.Hour)
			require.True(t, rejected)
			require.Equal(t, machine.Paused, o.shard.record(id).Status)
			require.Zero(t, o.iv.slots.used)
		})
	}
}
