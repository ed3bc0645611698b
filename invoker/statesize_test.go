package invoker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/metadata"
	"platform/partition/journal"
	"platform/partition/machine"
)

// change is a command that changes state: to a value of some length, or it clears a key, or all.
type change struct {
	key   string // empty: all
	size  int    // of the value
	clear bool
}

func (c change) frame() string {
	key := "0a" + varint(len(c.key)) + hexOf(c.key)
	switch {
	case c.key == "":
		return frame(journal.ClearAllState, "")
	case c.clear:
		return frame(journal.ClearState, key)
	}
	value := "0a" + varint(c.size) + strings.Repeat("76", c.size)
	return frame(journal.SetState, key+"1a"+varint(len(value)/2)+value)
}

// apply changes a state, as the sizes of its values, unless it would grow beyond the limit.
func (c change) apply(state map[string]int, limit int) bool {
	switch {
	case c.key == "":
		clear(state)
		return true
	case c.clear:
		delete(state, c.key)
		return true
	}
	sum := 0
	for key, size := range state {
		sum += limits.StateEntry(len(key), size)
	}
	old, known := state[c.key]
	if known {
		old = limits.StateEntry(len(c.key), old)
	}
	if size := limits.StateEntry(len(c.key), c.size); size > old && sum-old+size > limit {
		return false
	}
	state[c.key] = c.size
	return true
}

func frames(changes []change) (text string) {
	for _, c := range changes {
		text += c.frame()
	}
	return text
}

// changing is an endpoint whose attempts send changes of state in turn.
func changing(t *testing.T, cfg Config, attempts ...[]change) *bench {
	var scripts []func(*exchange)
	for _, changes := range attempts {
		scripts = append(scripts, func(x *exchange) {
			x.replay(1)
			x.head()
			x.send(frames(changes) + outputHi + end)
			x.expectEnd()
		})
	}
	return scripted(t, cfg, scripts...)
}

// stored is the size of the state of an object in the tables.
func (s *shard) stored(o machine.Object) (sum int) {
	_ = s.StateSizes(o, func(key []byte, size int) { sum += limits.StateEntry(len(key), size) })
	return sum
}

func TestStateBeyondTheLimitPausesTheInvocation(t *testing.T) {
	for name, eager := range map[string]int{"sent as a whole": 1 << 20, "sent in part": 40, "not sent": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := quickConfig()
			cfg.EagerStateLimit, cfg.StateSizeLimit = eager, 292
			cfg.Defaults.Retry.OnMaxAttempts = metadata.Kill // it is not the policy that pauses
			b := changing(t, cfg,
				[]change{{key: "a", size: 49}},
				[]change{{key: "b", size: 49}, {key: "b", size: 40}, {key: "c", size: 8}, {key: "c", size: 9}})
			object := counter("k").Object()
			_, ended := b.shard.call(counter("k"), 1, "1")
			require.Nil(t, receive(t, ended).Failure)
			id, _ := b.shard.call(counter("k"), 2, "1")
			b.shard.await(id, machine.Paused)

			f := b.shard.record(id).Failure
			require.Equal(t, string(errcode.RT0027), f.ErrorCode)
			require.Contains(t, f.Message, "Counter/\"k\" would have 293 bytes with 64 for each entry, at most 292 (worker.invoker.object-state-size-limit)")
			require.Equal(t, journal.SetState, f.RelatedCommand)
			require.Equal(t, uint32(4), *f.RelatedIndex)
			require.Equal(t, 292, b.shard.stored(object), "what came before is stored")
		})
	}
}

func TestStateAboveTheLimitCanShrink(t *testing.T) {
	for name, eager := range map[string]int{"sent as a whole": 1 << 20, "sent in part": 40, "not sent": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := quickConfig()
			cfg.EagerStateLimit, cfg.StateSizeLimit = eager, 164
			b := changing(t, cfg, []change{
				{key: "a", size: 99}, {key: "a", size: 98}, {key: "b", clear: true}, {key: "a", size: 80},
				{}, {key: "c", size: 99}, {key: "c", clear: true}, {key: "d", size: 99},
			})
			object := counter("k").Object()
			b.shard.put(object, map[string]int{"a": 99, "b": 30})
			_, ended := b.shard.call(counter("k"), 1, "1")
			require.Nil(t, receive(t, ended).Failure)
			require.Equal(t, 164, b.shard.stored(object))
		})
	}
}

// The size of the state is that of all writes before, also of those that are not stored yet.
func TestStateOfWritesInProgressCounts(t *testing.T) {
	for name, eager := range map[string]int{"sent as a whole": 1 << 20, "sent in part": 40, "not sent": 0} {
		t.Run(name, func(t *testing.T) {
			cfg := quickConfig()
			cfg.EagerStateLimit, cfg.StateSizeLimit = eager, 1128
			object := counter("k").Object()
			sent := make(chan struct{})
			var b *bench
			b = scripted(t, cfg, func(x *exchange) {
				x.replay(1)
				b.shard.hold(true)
				x.head()
				// A read flushes the commands before it; the shard applies nothing until it is released.
				x.send(frames([]change{{key: "a", size: 899}}) + frame(journal.GetLazyState, "0a01615801"))
				x.send(frames([]change{{}, {key: "b", size: 800}, {key: "b", size: 899}, {key: "c", size: 90}}) + frame(journal.GetLazyState, "0a01615802"))
				x.send(frames([]change{{key: "d", size: 9}}))
				close(sent)
				for _, open := x.read(); open; _, open = x.read() { // completions of the reads
				}
			})
			b.shard.put(object, map[string]int{"x": 99})
			id, _ := b.shard.call(counter("k"), 1, "1")
			<-sent
			require.Eventually(t, func() bool { return len(b.shard.proposed()) > 0 }, time.Minute, time.Millisecond)
			b.shard.hold(false)
			b.shard.await(id, machine.Paused)
			require.Equal(t, string(errcode.RT0027), b.shard.record(id).Failure.ErrorCode)
			require.Equal(t, 1119, b.shard.stored(object))
		})
	}
}

// A bound that attempts have left does not survive a replacement by an operator.
func TestReplacedStateIsMeasuredAgain(t *testing.T) {
	cfg := quickConfig()
	cfg.EagerStateLimit, cfg.StateSizeLimit = 0, 164
	b := changing(t, cfg, []change{{key: "a", size: 9}}, []change{{key: "b", size: 9}})
	object := counter("k").Object()
	_, ended := b.shard.call(counter("k"), 1, "1")
	require.Nil(t, receive(t, ended).Failure)
	b.shard.put(object, map[string]int{"z": 98})
	b.session.StateReplaced(object)
	id, _ := b.shard.call(counter("k"), 2, "1")
	b.shard.await(id, machine.Paused)
	require.Contains(t, b.shard.record(id).Failure.Message, "would have 311 bytes")
}

// A session keeps ten thousand bounds. A key may have megabytes, and is a part of a larger record.
func TestBoundsOfStateTakeLittleMemory(t *testing.T) {
	s := new(Session)
	keep := func(size int) weak.Pointer[byte] {
		record := make([]byte, 1<<20)
		s.keepBound(machine.Object{Key: unsafe.String(&record[0], size)}, 7)
		return weak.Make(&record[0])
	}
	keep(maxSizeKey + 1)
	require.Empty(t, s.sizes)
	record := keep(maxSizeKey)
	runtime.GC()
	require.Nil(t, record.Value())
	require.Len(t, s.sizes, 1)
}

// Whatever attempts write, they are refused exactly what makes the state larger than the limit.
func TestStateSizesAreExact(t *testing.T) {
	const limit = 300 + 6*64
	for seed := range uint64(30) {
		for _, eager := range []int{0, 150, 1 << 20} {
			random := rand.New(rand.NewPCG(seed, uint64(eager)))
			state := map[string]int{}
			var attempts [][]change
			var paused []bool
			for range 8 {
				var changes []change
				fits := true
				for range 1 + random.IntN(100) {
					c := change{key: fmt.Sprint("k", random.IntN(12)), size: random.IntN(60)}
					switch n := random.IntN(100); {
					case n == 0:
						c = change{}
					case n < 15:
						c.clear = true
					}
					changes = append(changes, c)
					if fits = c.apply(state, limit); !fits {
						break
					}
				}
				attempts, paused = append(attempts, changes), append(paused, !fits)
			}
			cfg := quickConfig()
			cfg.EagerStateLimit, cfg.StateSizeLimit = eager, limit
			b := changing(t, cfg, attempts...)
			object := counter("k").Object()
			for i := range attempts {
				id, ended := b.shard.call(counter("k"), byte(i+1), "1")
				if !paused[i] {
					require.Nil(t, receive(t, ended).Failure, "seed %d, eager %d, attempt %d", seed, eager, i)
					continue
				}
				b.shard.await(id, machine.Paused)
				require.Equal(t, string(errcode.RT0027), b.shard.record(id).Failure.ErrorCode)
				done := make(chan struct{})
				b.shard.submit(&machine.Kill{Target: id}, func(machine.Outcome, error) { close(done) })
				<-done
			}
			sum := 0
			for key, size := range state {
				sum += limits.StateEntry(len(key), size)
			}
			require.Equal(t, sum, b.shard.stored(object), "seed %d, eager %d", seed, eager)
		}
	}
}
