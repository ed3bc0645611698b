package invoker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/metadata"
	"platform/partition/journal"
)

// TestSlotsAreSharedMaxMin draws arrivals and departures. No limit is exceeded, no slot
// is left free that may be taken, a service that holds nothing never waits while one is
// free, and of those that wait the one that holds the fewest is served.
func TestSlotsAreSharedMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := slots{
			limit:      rapid.SampledFrom([]int{0, 1, 2, 5, 17, 100}).Draw(t, "limit"),
			perService: rapid.SampledFrom([]int{0, 0, 1, 3, 50}).Draw(t, "per service"),
		}
		held := map[string]int{}
		waiting := map[string]int{}
		total := 0
		for range rapid.IntRange(1, 300).Draw(t, "events") {
			service := rapid.SampledFrom([]string{"A", "B", "C", "D"}).Draw(t, "service")
			if held[service] > 0 && rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
				w, passed := q.release(q.shares[service])
				held[service]--
				total--
				if passed {
					to := w.share.service
					for other, n := range waiting {
						if n > 0 {
							require.LessOrEqual(t, held[to], held[other], "%s was served before %s", to, other)
						}
					}
					waiting[to]--
					held[to]++
					total++
				}
			} else {
				free := q.limit - total
				got, _, _ := q.acquire(flowcontrol.QueueKey{Service: service}, false, &waiter{})
				if got {
					held[service]++
					total++
				} else {
					waiting[service]++
					require.False(t, held[service] == 0 && free > 0, "a slot is free, and %s holds none", service)
				}
			}
			check(t, &q, held, waiting, total)
		}
	})
}

func check(t *rapid.T, q *slots, held, waiting map[string]int, total int) {
	anyWaits, count := false, 0
	for service, n := range waiting {
		anyWaits, count = anyWaits || n > 0, count+n
		if s := q.shares[service]; n > 0 {
			require.Equal(t, n, s.waiting)
			require.False(t, q.allowsLocked(s, headroom), "%s waits for a slot that it may have", service)
		}
	}
	shares := 0
	for service, n := range held {
		require.True(t, q.perService == 0 || n <= q.perService)
		if n > 0 || waiting[service] > 0 {
			shares++
			require.Equal(t, n, q.shares[service].used)
		}
	}
	require.True(t, q.limit == 0 || total <= q.limit)
	require.Equal(t, total, q.used)
	require.Equal(t, count, q.waiting)
	require.Equal(t, anyWaits, q.short.Load())
	require.GreaterOrEqual(t, len(q.shares), shares)
	for _, s := range q.shares {
		require.True(t, s.used > 0 || s.waiting > 0, "what is idle is forgotten")
	}
}

func TestWorkInProgressComesBeforeNewWork(t *testing.T) {
	q := slots{limit: 1}
	key := flowcontrol.QueueKey{Service: "A"}
	acquire := func(resumed bool, n uint64) bool {
		got, _, _ := q.acquire(key, resumed, &waiter{number: n})
		return got
	}
	require.True(t, acquire(false, 0))
	for n := range uint64(3) {
		require.False(t, acquire(false, n+1))
	}
	for n := range uint64(7) {
		require.False(t, acquire(true, n+101))
	}
	var order []uint64
	for w, passed := q.release(q.shares["A"]); passed; w, passed = q.release(w.share) {
		order = append(order, w.number)
	}
	require.Equal(t, []uint64{101, 102, 103, 1, 104, 105, 106, 2, 107, 3}, order)
}

func TestPartitionsAndQueuesOfAServiceAreServedRoundRobin(t *testing.T) {
	q := slots{limit: 1}
	p1, p2 := &Session{}, &Session{}
	acquire := func(s *Session, scope string, n uint64) {
		q.acquire(flowcontrol.QueueKey{Scope: scope, Service: "A"}, false, &waiter{s: s, number: n})
	}
	acquire(p1, "", 0)
	for n := range uint64(3) {
		acquire(p1, "", 10+n)
	}
	acquire(p2, "", 20)
	acquire(p1, "s", 30)
	var order []uint64
	for w, passed := q.release(q.shares["A"]); passed; w, passed = q.release(w.share) {
		order = append(order, w.number)
	}
	require.Equal(t, []uint64{10, 20, 30, 11, 12}, order)
}

// A service whose handlers wait without having sent a command does not block another.
func TestAServiceAtItsLimitDoesNotDelayAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(1, metadata.Kill)
		cfg.ConcurrentInvocations = 100
		o := newOffline(t, cfg, func(w *wire) {
			if w.recv.(*attempt).t.inv.Target.Service == "Counter" {
				answers(t)(w)
				return
			}
			w.ok()
		})
		defer o.close()
		for n := range byte(150) {
			o.shard.call(greeter, n+1, "")
		}
		synctest.Wait()
		begin := time.Now()
		var ended []chan journal.Result
		for n := range byte(100) {
			_, end := o.shard.call(counter(fmt.Sprint(n)), n+1, "")
			ended = append(ended, end)
		}
		for _, end := range ended {
			receive(t, end)
		}
		require.Zero(t, time.Since(begin))

		// A service above its share is later asked to suspend handlers while another one
		// waits.
		o.iv.slots.mu.Lock()
		require.Equal(t, 95, o.iv.slots.shares["Greeter"].used)
		o.iv.slots.mu.Unlock()
		require.False(t, o.wire(0).is(&o.wire(0).ended))
	})
}

func TestHandlersOverTheShareOfTheirServiceAreSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy(1, metadata.Kill)
		cfg.ConcurrentInvocations = 10
		o := newOffline(t, cfg, func(w *wire) { w.ok() })
		defer o.close()
		for n := range byte(9) {
			o.shard.call(greeter, n+1, "")
		}
		o.shard.call(counter("a"), 100, "")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.False(t, o.wire(0).is(&o.wire(0).ended), "nothing waits")
		o.shard.call(counter("b"), 101, "") // a slot less than an equal share
		time.Sleep(idleTimeout + time.Millisecond)
		synctest.Wait()
		require.True(t, o.wire(0).is(&o.wire(0).ended), "silent for longer than that")
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, w := range o.wires {
			if w.recv.(*attempt).t.inv.Target.Service == "Greeter" {
				require.True(t, w.is(&w.ended), "attempt %d", i)
			}
		}
	})
}
