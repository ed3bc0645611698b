package invoker

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"platform/flowcontrol"
	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/stats"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// backlog is an occupied slot for which count invocations wait, the first two together with their
// records.
func backlog(t *testing.T, count byte, rest ...func(*wire)) (o *offline, waiting []ids.Invocation, ended []chan journal.Result) {
	o = oneSlot(t, append([]func(*wire){func(w *wire) { w.ok() }}, rest...)...)
	o.iv.slots.maxRecords = 2
	o.shard.call(greeter, 1, "")
	for n := range count {
		id, end := o.shard.call(greeter, n+2, `"in"`)
		waiting, ended = append(waiting, id), append(ended, end)
	}
	synctest.Wait()
	require.Len(t, o.session.tasks, 3, "the others wait without records")
	require.Equal(t, int(count), o.iv.slots.waiting)
	return o, waiting, ended
}

// A log entry has up to 52 MiB, and a waiting invocation a record of some hundred bytes of it.
func TestWaitingInvocationsDoNotRetainTheirLogEntries(t *testing.T) {
	for name, maxRecords := range map[string]int{"with record": maxRecords, "without record": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := oneSlot(t, func(w *wire) { w.ok() })
				defer o.close()
				o.iv.slots.maxRecords = maxRecords
				o.shard.call(greeter, 1, "")
				o.shard.call(greeter, 2, `"waits"`)
				synctest.Wait()
				waiting := o.iv.slots.waiting
				entry := o.runFromEntry()
				require.Equal(t, waiting+1, o.iv.slots.waiting)
				runtime.GC()
				require.Nil(t, entry.Value())
			})
		})
	}
}

// runFromEntry starts an invocation whose record and input are parts of a log entry, which it
// returns.
func (o *offline) runFromEntry() weak.Pointer[byte] {
	entry := make([]byte, 1<<20)
	text := unsafe.String(&entry[0], 4)
	inv := &machine.Invocation{
		ID: ids.NewInvocation(1, [16]byte{99}), Status: machine.Invoked, Attempt: 99, Length: 1,
		Target: machine.Target{Scope: text, Service: text, Key: text, Handler: text}, IdempotencyKey: &text, LimitKey: text,
		Source: machine.Source{CallerTarget: text, Subscription: text}, Trace: machine.Trace{Parent: text, State: text, Baggage: text},
		ServerVersion: text, Pin: machine.Pin{Deployment: ids.Deployment(text)}, LastPause: &machine.PauseRecord{By: text, Reason: text},
	}
	o.session.Run(&machine.Run{Invocation: inv, Input: entry[4:]})
	return weak.Make(&entry[0])
}

// served is how many attempts sent something.
func (o *offline) served() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.wires {
		if w.length() > 0 {
			n++
		}
	}
	return n
}

func TestABacklogWaitsWithoutRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, waiting, ended := backlog(t, 20, answers(t))
		defer o.close()
		gone := waiting[10]
		o.shard.submit(&machine.Kill{Target: gone}, func(machine.Outcome, error) {})
		again := waiting[11] // notified twice
		record := o.shard.record(again)
		o.session.Run(machine.RunOf(&record))
		o.wire(0).send(t, outputHi+end)
		for i, end := range ended {
			result := receive(t, end)
			require.Equal(t, i == 10, result.Failure != nil, "%d: %v", i, result.Failure)
		}
		synctest.Wait()
		require.Equal(t, 1+19, o.served(), "all but the killed one, once each")
		require.Equal(t, 17, o.shard.records, "one read for each of those that waited without a record")
		require.Empty(t, o.session.tasks)
		require.Zero(t, o.iv.slots.used)
	})
}

func TestTheEndOfALeadershipStartsNoWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _, _ := backlog(t, 20, answers(t))
		o.session.Close()
		synctest.Wait()
		require.Equal(t, 1, o.served(), "canceled waiters get no slot")
		require.Zero(t, o.iv.slots.used)
		o.close()
	})
}

func TestAFailedReadOfARecordIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) { w.ok() }, answers(t))
		defer o.close()
		part := &unreadable{shard: o.shard}
		o.session.Close()
		o.session = o.iv.openSession(part)
		o.shard.session = o.session
		o.iv.slots.maxRecords = 0
		o.shard.call(greeter, 1, "")
		o.shard.call(greeter, 2, "")
		id, ended := o.shard.call(greeter, 3, "")
		synctest.Wait()
		part.broken.Store(true)
		o.wire(0).send(t, outputHi+end)
		synctest.Wait()
		st, known := o.iv.Status(id)
		require.True(t, known)
		require.Equal(t, string(errcode.RT0006), st.LastFailure.ErrorCode)
		part.broken.Store(false)
		require.Nil(t, receive(t, ended).Failure)
	})
}

// An invocation that waited without its record is planned while its journal is read.
func TestAFailedPlanOfOneThatWaitedWithoutItsRecordIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := oneSlot(t, func(w *wire) { w.ok() }, answers(t))
		defer o.close()
		o.iv.slots.maxRecords = 0
		o.shard.call(greeter, 1, "")
		_, other := o.shard.call(greeter, 2, "")
		id, ended := o.shard.call(greeter, 3, "")
		synctest.Wait()
		registered := o.Schemas()
		o.bench.mu.Lock()
		o.schemas = &metadata.Schemas{}
		o.bench.mu.Unlock()
		o.wire(0).send(t, outputHi+end)
		synctest.Wait()
		st, known := o.iv.Status(id)
		require.True(t, known)
		require.Equal(t, string(errcode.RT0011), st.LastFailure.ErrorCode)
		require.Equal(t, 1, st.RetryCount)
		require.False(t, st.NextRetryAt.IsZero())
		o.iv.slots.mu.Lock()
		require.Zero(t, o.iv.slots.used, "a failed plan holds no slot")
		o.iv.slots.mu.Unlock()
		o.shard.mu.Lock()
		require.Positive(t, o.shard.records, "they waited without their records")
		o.shard.mu.Unlock()
		o.bench.mu.Lock()
		o.schemas = registered
		o.bench.mu.Unlock()
		require.Nil(t, receive(t, ended).Failure)
		require.Nil(t, receive(t, other).Failure) // which is retried before or after, at random
		synctest.Wait()
		require.Empty(t, o.session.tasks)
		require.Zero(t, o.iv.slots.used)
		require.Equal(t, 3, o.served())
	})
}

// TestTheAgeOfWaitingInvocations is that of the oldest one of a service, in whichever queue.
func TestTheAgeOfWaitingInvocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iv := &Invoker{slots: slots{limit: 1}}
		acquire := func(service, scope string, resumed bool) {
			iv.slots.acquire(flowcontrol.QueueKey{Service: service, Scope: scope}, resumed, &waiter{s: &Session{}})
		}
		acquire("A", "", false) // gets the slot
		for _, scope := range []string{"x", "y"} {
			acquire("A", scope, false)
			time.Sleep(time.Minute)
			acquire("A", scope, true)
			acquire("B", scope, false)
		}
		require.Equal(t, stats.Load{InFlight: 1, Waiting: 4, Oldest: 2 * time.Minute}, iv.Load()["A"])
		require.Equal(t, stats.Load{Waiting: 2, Oldest: time.Minute}, iv.Load()["B"])
		time.Sleep(time.Minute)
		w, passed := iv.slots.release(iv.slots.shares["A"])
		require.True(t, passed)
		require.Equal(t, "B", w.share.service) // which has no slot
		require.Equal(t, stats.Load{InFlight: 1, Waiting: 1, Oldest: time.Minute}, iv.Load()["B"])
	})
}

// TestWaitingInvocationsLeaveWithTheirSession loses leaderships while invocations wait. They wait
// again in the session of the next leadership, so that those of lost ones must not add up.
func TestWaitingInvocationsLeaveWithTheirSession(t *testing.T) {
	cfg := policy(1, metadata.Pause)
	cfg.ConcurrentInvocations = 1
	iv := New(cfg, &bench{schemas: testSchemas("http://nowhere/")}, nil)
	defer iv.Close()
	key := func(scope string) flowcontrol.QueueKey { return flowcontrol.QueueKey{Service: "A", Scope: scope} }
	iv.slots.acquire(key(""), false, &waiter{})
	kept, lost := iv.openSession(nil), iv.openSession(nil)
	for n := range uint64(10) {
		iv.enqueue(key("x"), n%2 == 0, waiter{s: lost, number: n})
		iv.enqueue(key("y"), n%2 == 0, waiter{s: kept, number: n})
		iv.enqueue(flowcontrol.QueueKey{Service: "B"}, false, waiter{s: lost, number: n})
	}
	lost.Close()
	loads := iv.Load()
	require.Len(t, loads, 1)
	require.Equal(t, 10, loads["A"].Waiting)
	w, passed := iv.slots.release(iv.slots.shares["A"])
	require.True(t, passed)
	require.Same(t, kept, w.s)
	kept.Close()
	require.Zero(t, iv.Load()["A"].Waiting)
	require.False(t, iv.slots.short.Load())
}

func TestQueuesAreServedRoundRobin(t *testing.T) {
	q := slots{limit: 1}
	acquire := func(service string, n uint64) bool {
		w := waiter{number: n}
		got, _, _ := q.acquire(flowcontrol.QueueKey{Service: service}, false, &w)
		return got
	}
	require.True(t, acquire("A", 0))
	for n := range uint64(3000) {
		require.False(t, acquire("A", n+1))
	}
	require.False(t, acquire("B", 10_001))
	require.False(t, acquire("B", 10_002))
	var order []uint64
	for w, passed := q.release(q.shares["A"]); passed; w, passed = q.release(w.share) {
		order = append(order, w.number)
	}
	require.Equal(t, []uint64{10_001, 1, 10_002, 2, 3, 4}, order[:6])
	require.Len(t, order, 3002)
	require.IsIncreasing(t, order[4:])
	require.Zero(t, q.used)
	require.Zero(t, q.waiting)
	require.False(t, q.short.Load())
	require.True(t, acquire("B", 1))
}
