package invoker

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/invoker/protocol"
	"platform/metadata"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/machine"
)

func isOver(wait <-chan struct{}) bool {
	select {
	case <-wait:
		return true
	default:
		return wait == nil
	}
}

func TestAttemptsStartInOrderAsMemoryAllows(t *testing.T) {
	b := &budget{limit: 100}
	first, second, third, small := account{b: b}, account{b: b}, account{b: b}, account{b: b}
	require.Nil(t, first.begin(70))
	waits := []<-chan struct{}{second.begin(60), third.begin(50), small.begin(1)}
	for _, w := range waits {
		require.False(t, isOver(w))
	}
	first.sent(40)
	require.True(t, isOver(waits[0]))
	require.False(t, isOver(waits[1]))
	require.False(t, isOver(waits[2]), "FIFO")
	second.close()
	require.True(t, isOver(waits[1]) && isOver(waits[2]))
	require.Equal(t, 81, b.used)
	for _, c := range []*account{&first, &second, &third, &small} {
		c.close()
	}
	require.Zero(t, b.used)
}

// Small attempts pass a large one that waits for more than is free, but do not starve it.
func TestSmallAttemptsOvertakeALargeOneOnlySoOften(t *testing.T) {
	const overtakes = 4
	b := &budget{limit: overtakes * reserveShare * smallTransit}
	var reserve [overtakes]account
	for i := range reserve {
		reserve[i].b = b
		require.Nil(t, reserve[i].begin(1)) // they fit
		require.True(t, reserve[i].reservedLocked(1))
	}
	holder, large, next := account{b: b}, account{b: b}, account{b: b}
	require.Nil(t, holder.begin(b.limit-10*smallTransit))
	waits := large.begin(11 * smallTransit)
	require.False(t, isOver(waits))
	require.False(t, isOver(next.begin(smallTransit+1)), "it is not small")
	var small [2 * overtakes]account
	started, waiting := 0, []<-chan struct{}{}
	for i := range small {
		small[i].b = b
		if wait := small[i].begin(smallTransit); wait == nil {
			started++
		} else {
			waiting = append(waiting, wait)
		}
	}
	require.Equal(t, overtakes, started)
	small[0].close() // a place for another small one, which the large one keeps
	require.False(t, isOver(waits))
	require.False(t, isOver(waiting[0]))
	holder.close()
	require.True(t, isOver(waits))
	large.close()
	for _, w := range waiting {
		require.True(t, isOver(w))
	}
	for _, c := range [][]account{reserve[:], small[:], {large, next}} {
		for i := range c {
			c[i].close()
		}
	}
}

// A small attempt that waits because everything is in use starts before a large one that came first.
func TestWaitingSmallAttemptsStartFirst(t *testing.T) {
	b := &budget{limit: 16 * smallTransit}
	holder, large, small := account{b: b}, account{b: b}, account{b: b}
	var reserve [4]account
	for i := range reserve {
		reserve[i].b = b
		require.True(t, reserve[i].reservedLocked(1))
	}
	require.Nil(t, holder.begin(16*smallTransit))
	first, second := large.begin(15*smallTransit), small.begin(1)
	require.False(t, isOver(first) || isOver(second))
	holder.sent(smallTransit)
	require.True(t, isOver(second))
	require.False(t, isOver(first))
	large.close() // it was aborted
	require.True(t, isOver(first))
	holder.close()
	require.Zero(t, b.startWaiters.len()+b.smallStarts.len())
}

func TestAnAbortedAttemptDoesNotWaitForMemory(t *testing.T) {
	b := &budget{limit: 100}
	holder, cut, next := account{b: b}, account{b: b}, account{b: b}
	require.Nil(t, holder.begin(100))
	first, second := cut.begin(10), next.begin(10)
	cut.close()
	require.True(t, isOver(first))
	require.True(t, cut.loaded(1000), "it goes on to notice that it is over")
	require.False(t, isOver(second))
	holder.close()
	require.True(t, isOver(second))
	require.Equal(t, 10, b.used)
}

func TestAnAttemptAboveTheLimitStartsAlone(t *testing.T) {
	b := &budget{limit: 100}
	small, large := account{b: b}, account{b: b}
	require.Nil(t, small.begin(1))
	require.Nil(t, large.begin(0))
	require.False(t, large.loaded(200), "its size was not known")
	wait := large.begin(200)
	require.False(t, isOver(wait))
	small.close()
	require.True(t, isOver(wait))
	require.True(t, large.loaded(210), "nothing else is in use")
	require.Equal(t, 210, b.used)
}

func TestOneAttemptMayOverdrawTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{limit: 100, ceiling: 1000}
		var c [3]account
		var wait [3]<-chan struct{}
		for i := range c {
			c[i].b = b
			require.True(t, c[i].received(50))
		}
		for i := range c {
			wait[i] = c[i].read()
		}
		require.True(t, isOver(wait[0]), "it overdraws the budget")
		require.False(t, isOver(wait[1]) || isOver(wait[2]))
		require.True(t, c[0].received(500))
		require.Nil(t, c[0].read())
		require.False(t, c[0].received(1001), "but not without limit")
		require.True(t, c[0].received(0))
		require.True(t, isOver(wait[1]))
		require.False(t, isOver(wait[2]))

		time.Sleep(overdraftTime - time.Millisecond)
		require.True(t, c[1].received(60)) // it makes progress
		time.Sleep(overdraftTime - time.Millisecond)
		synctest.Wait()
		require.False(t, isOver(wait[2]))
		time.Sleep(overdraftTime)
		synctest.Wait()
		require.True(t, isOver(wait[2]), "an overdraft without progress ends")
		for i := range c {
			c[i].close()
		}
		require.Zero(t, b.used)
		require.Nil(t, b.overdrawn)
	})
}

// memoryUsed is what attempts hold once nothing is under way.
func (o *offline) memoryUsed() int {
	synctest.Wait()
	b := &o.iv.memory
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// memories is a configuration with that much memory.
func memories(all, one int) Config {
	cfg := policy(1, metadata.Kill)
	cfg.MemoryLimit, cfg.InvocationMemoryLimit = all, one
	return cfg
}

func TestAttemptsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		started := 0
		o := newOffline(t, memories(10_000, 8_000), func(w *wire) {
			mu.Lock()
			started++
			mu.Unlock()
			<-release
			w.recv.(*attempt).Sent(w.length())
			w.ok()
			w.send(t, outputHi+end)
		})
		defer o.close()
		var ended []chan journal.Result
		for n := range byte(6) {
			_, done := o.shard.call(greeter, n+1, string(make([]byte, 3000)))
			ended = append(ended, done)
		}
		synctest.Wait()
		mu.Lock()
		require.Equal(t, 3, started)
		mu.Unlock()
		for range ended {
			release <- struct{}{}
			synctest.Wait()
			require.LessOrEqual(t, o.memoryUsed(), 10_000)
		}
		for _, done := range ended {
			require.Nil(t, receive(t, done).Failure)
		}
		require.Zero(t, o.memoryUsed())
	})
}

// What arrives before the journal is read is in it, and needs no memory until then.
func TestNotificationsAreNotKeptWhileAnAttemptWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		o := newOffline(t, memories(10_000, 8_000), func(w *wire) {
			<-release
			w.recv.(*attempt).Sent(w.length())
			w.ok()
			w.send(t, outputHi+end)
		})
		defer o.close()
		_, first := o.shard.call(greeter, 1, string(make([]byte, 7000)))
		synctest.Wait()
		waiting, second := o.shard.call(greeter, 2, string(make([]byte, 3500)))
		synctest.Wait()
		for n := range 2 {
			o.shard.submit(&machine.Signal{
				Target: waiting, ID: journal.NamedSignal(string(rune('a' + n))), Result: &journal.Result{Value: make([]byte, 2000)},
			}, func(machine.Outcome, error) {})
		}
		synctest.Wait()
		task := o.session.task(waiting)
		task.mu.Lock()
		before, kept := task.state, len(task.a.notifications.early)
		task.mu.Unlock()
		release <- struct{}{}
		require.Nil(t, receive(t, first).Failure)
		synctest.Wait()
		sent := o.wire(1).length()
		release <- struct{}{}
		require.Nil(t, receive(t, second).Failure)
		require.Equal(t, loading, before)
		require.Zero(t, kept)
		require.Greater(t, sent, 7500, "input and signals")
		require.Zero(t, o.memoryUsed())
	})
}

// reservedLoads checks that memory for a journal is reserved before it is read.
type reservedLoads struct {
	*shard
	t    *testing.T
	b    *budget
	most []int
}

func (r *reservedLoads) Load(id ids.Invocation, attempt uint64, most int, limit func(*machine.Invocation) (int, error)) (*attempts.Replay, error) {
	r.b.mu.Lock()
	used := r.b.used
	r.b.mu.Unlock()
	require.LessOrEqual(r.t, most, used+unreservedLoad)
	r.most = append(r.most, most)
	return r.shard.Load(id, attempt, most, limit)
}

func TestLargeJournalsAreReadOnceThereIsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := memories(8<<20, 6<<20)
		cfg.ConcurrentInvocations = 1
		o := newOffline(t, cfg, func(w *wire) {
			w.recv.(*attempt).Sent(w.length())
			w.ok()
			time.Sleep(time.Second)
			w.send(t, outputHi+end)
		})
		defer o.close()
		loads := &reservedLoads{shard: o.shard, t: t, b: &o.iv.memory}
		o.session.part = loads
		o.iv.slots.maxRecords = 0 // the third one waits as an ID
		var ended []chan journal.Result
		for n := range byte(3) {
			_, done := o.shard.call(greeter, n+1, string(make([]byte, 5<<20)))
			ended = append(ended, done)
		}
		for _, done := range ended {
			require.Nil(t, receive(t, done).Failure)
		}
		require.Len(t, loads.most, 2)
		require.Equal(t, unreservedLoad, loads.most[0])
		require.Greater(t, loads.most[1], 5<<20)
		require.Zero(t, o.memoryUsed())
	})
}

func TestAnAttemptThatNeedsTooMuchFails(t *testing.T) {
	for name, c := range map[string]struct {
		input int
		state int
		then  string
	}{
		"journal":  {9000, 0, "the journal and the state, 90"},
		"state":    {10, 9000, "the journal and the state, 91"},
		"response": {10, 0, "the attempt exceeds its memory limit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffline(t, memories(10_000, 8_000), func(w *wire) {
					w.ok()
					message := append(protocol.AppendHeader(nil, journal.Output, 9000), make([]byte, 9000)...)
					for len(message) > 0 {
						n := min(len(message), 1000)
						w.recv.Data(message[:n])
						message = message[n:]
					}
				})
				defer o.close()
				if c.state > 0 {
					o.shard.tables.PutValue(counter("k").Object(), []byte("v"), make([]byte, c.state))
				}
				_, ended := o.shard.call(counter("k"), 1, string(make([]byte, c.input)))
				r := receive(t, ended)
				require.Contains(t, r.Failure.Message, c.then)
				require.Contains(t, r.Failure.Message, "worker.invoker.per-invocation-memory-limit")
				require.Zero(t, o.memoryUsed())
				synctest.Wait()
				o.iv.slots.mu.Lock()
				defer o.iv.slots.mu.Unlock()
				require.Zero(t, o.iv.slots.used)
			})
		})
	}
}

func TestAnEndpointThatDoesNotReadIsAskedToSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, memories(10_000, 8_000), func(w *wire) {
			w.ok()
			w.send(t, frame(journal.Run, "5801")+frame(journal.Run, "5802"))
			for _, id := range []byte{1, 2} {
				payload := append([]byte{8, id, 0x72, 0xb8, 0x17}, make([]byte, 3000)...)
				w.recv.Data(append(protocol.AppendHeader(nil, protocol.ProposeRunCompletion, len(payload)), payload...))
			}
		})
		defer o.close()
		id, _ := o.shard.call(greeter, 1, "")
		synctest.Wait()
		require.Equal(t, []journal.Type{journal.Input, journal.Run, journal.Run, journal.RunCompletion, journal.RunCompletion}, o.shard.journal(id))
		w := o.wire(0)
		require.True(t, w.is(&w.ended))
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Less(t, w.written, 6_000, "the second result is left to the next attempt")
	})
}

func TestAllInvocationsEndWhileMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, count, limit, one, chunk = 100_000, 40, 300_000, 200_000, 2000
		most := 0
		o := newOffline(t, memories(limit, one), func(w *wire) {
			a := w.recv.(*attempt)
			a.Sent(w.length())
			w.ok()
			value := append([]byte{0x72, 0x80 | (size+4)&0x7f, 0x80 | (size+4)>>7&0x7f, (size + 4) >> 14, 0x0a, 0x80 | size&0x7f, 0x80 | size>>7&0x7f, size >> 14}, make([]byte, size)...)
			message := append(protocol.AppendHeader(nil, journal.Output, len(value)), value...)
			for len(message) > 0 {
				n := min(len(message), chunk)
				w.recv.Data(message[:n])
				message = message[n:]
				a.s.iv.memory.mu.Lock()
				most = max(most, a.s.iv.memory.used)
				a.s.iv.memory.mu.Unlock()
				time.Sleep(time.Millisecond) // until all others have sent as much, or wait
			}
			w.send(t, end)
		})
		defer o.close()
		var ended []chan journal.Result
		for n := range byte(count) {
			_, done := o.shard.call(greeter, n+1, "")
			ended = append(ended, done)
		}
		for _, done := range ended {
			r := receive(t, done)
			require.Nil(t, r.Failure)
			require.Len(t, r.Value, size)
		}
		require.Zero(t, o.memoryUsed())
		o.iv.memory.mu.Lock()
		defer o.iv.memory.mu.Unlock()
		require.Greater(t, most, limit, "it did run short")
		// As soon as less is used than the limit, all waiting attempts take one more chunk, and a
		// buffer has room for up to four times what is in it.
		require.Less(t, most, 4*(limit+count*chunk)+one)
	})
}

func TestCloseWhileAttemptsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffline(t, memories(1000, 1000), func(w *wire) { w.ok() })
		for n := range byte(5) {
			o.shard.call(greeter, n+1, string(make([]byte, 900)))
		}
		synctest.Wait()
		o.iv.memory.mu.Lock()
		require.Equal(t, 4, o.iv.memory.smallStarts.len())
		o.iv.memory.mu.Unlock()
		o.close()
		require.Zero(t, o.memoryUsed())
	})
}

// Attempts with little data do not wait for those with much, up to the reserve.
func TestSmallAttemptsUseTheReserve(t *testing.T) {
	b := &budget{limit: 8 * smallTransit}
	large, waiting := &account{b: b}, &account{b: b}
	require.Nil(t, large.begin(8*smallTransit))
	require.NotNil(t, waiting.begin(smallTransit+1))
	var small []*account
	for range 2 {
		c := &account{b: b}
		small = append(small, c)
		require.Nil(t, c.begin(100))
		require.True(t, c.loaded(200))
		require.True(t, c.received(smallTransit))
		require.Nil(t, c.read())
	}
	third := &account{b: b}
	require.NotNil(t, third.begin(100), "the reserve is used up")
	small[0].close()
	require.Nil(t, (&account{b: b}).begin(100))
	require.True(t, small[1].received(smallTransit+1))
	<-small[1].read() // one may overdraw
	require.Equal(t, 2, b.reserved)
}

// Attempts that use the reserve do not keep a large one waiting, however many follow each other.
func TestSmallAttemptsDoNotStarveALargeOne(t *testing.T) {
	b := &budget{limit: 8 * smallTransit}
	last := &account{b: b}
	require.Nil(t, last.begin(smallTransit))
	large := &account{b: b}
	turn := large.begin(b.limit)
	require.NotNil(t, turn)
	for range 3 {
		next := &account{b: b}
		require.Nil(t, next.begin(smallTransit))
		last.close()
		last = next
	}
	require.True(t, isOver(turn))
	require.Equal(t, b.limit+smallTransit, b.used)
	require.Equal(t, b.limit, b.countedLocked())
	large.close()
	require.Zero(t, b.countedLocked())
	require.True(t, last.send(2*smallTransit))
	require.Equal(t, 2*smallTransit, b.countedLocked(), "it is no longer small")
	last.close()
	require.Zero(t, b.used)
	require.Zero(t, b.countedLocked())
}

// TestTheBudgetDoesNotRetainAdmittedAttempts requires that an attempt that has waited can be
// collected once it has ended, although another one still waits: it refers to its payloads.
func TestTheBudgetDoesNotRetainAdmittedAttempts(t *testing.T) {
	b := &budget{limit: 100}
	holder := &account{b: b}
	require.Nil(t, holder.begin(60))
	b.overdrawn, b.progress = holder, time.Now()
	for name, wait := range map[string]func(*account) <-chan struct{}{
		"start": func(c *account) <-chan struct{} { return c.begin(80) },
		"read":  func(c *account) <-chan struct{} { c.received(50); return c.read() },
		"hold":  func(c *account) <-chan struct{} { grant, _ := c.hold(80); return grant },
	} {
		other := &account{b: b}
		ended := func() weak.Pointer[account] {
			c := &account{b: b}
			granted := wait(c)
			require.False(t, isOver(wait(other)), name)
			c.close()
			require.True(t, isOver(granted), name)
			return weak.Make(c)
		}()
		runtime.GC()
		require.Nil(t, ended.Value(), name)
		other.close()
	}
}

// TestMemoryDoesNotStayFreeWhileAttemptsWait requires that whatever releases memory resumes the attempts
// that it suffices for, in any sequence of events.
func TestMemoryDoesNotStayFreeWhileAttemptsWait(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	waiting := func(b *budget) [3]int {
		return [3]int{b.readWaiters.len(), b.holdWaiters.len(), b.startWaiters.len() + b.smallStarts.len()}
	}
	for range 300 {
		b := &budget{limit: 8 * smallTransit, ceiling: 6 * smallTransit}
		accounts := make([]*account, 8)
		for i := range accounts {
			accounts[i] = &account{b: b}
		}
		size := func() int { return rng.IntN(1 << (1 + rng.IntN(19))) }
		for n := range 200 {
			c, event := accounts[rng.IntN(len(accounts))], rng.IntN(9)
			switch {
			case event == 0 || c.closed:
				c.close()
				*c = account{b: b}
			case c.granted != nil:
				continue // it waits
			case event < 3 && c.in == 0:
				c.begin(size())
			case event < 3:
				c.loaded(size())
			case event == 3:
				c.sent(size())
			case event == 4:
				c.hold(size())
			case event == 5:
				c.read()
			case event == 6:
				c.received(c.out / 2)
			default:
				c.received(size())
			}
			before := waiting(b)
			b.admitLocked()
			require.Equal(t, before, waiting(b), "event %d, after %d others", event, n)
		}
		for _, c := range accounts {
			c.close()
		}
		require.Zero(t, [4]int{b.used, b.countedLocked(), b.reserved, b.startWaiters.len() + b.smallStarts.len()})
		if b.overdraftTimer != nil {
			b.overdraftTimer.Stop()
		}
	}
}
