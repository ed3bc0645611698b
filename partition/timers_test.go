package partition

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
)

// timerTable is a table of timers and the leader's timer queue. Fired timers are deleted
// from the table, as by applying FireTimers.
type timerTable struct {
	mu    sync.Mutex
	rows  []machine.Timer
	fired map[machine.Timer]int64 // with the time
	loads int
}

func (tt *timerTable) load(from, before machine.Timer) (due []machine.Timer, more bool, err error) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	tt.loads++
	slices.SortFunc(tt.rows, machine.Timer.Compare)
	lower, _ := slices.BinarySearchFunc(tt.rows, from, machine.Timer.Compare)
	upper, _ := slices.BinarySearchFunc(tt.rows, before, machine.Timer.Compare)
	for names := 0; lower < upper; lower++ {
		if len(due) >= timerLimit || names >= timerLimitBytes {
			return due, true, nil
		}
		due = append(due, tt.rows[lower])
		names += len(tt.rows[lower].Name)
	}
	return due, false, nil
}

func (tt *timerTable) fire(_ context.Context, timers []machine.Timer) error {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	for _, t := range timers {
		i := slices.Index(tt.rows, t)
		if i < 0 {
			continue // ignored when applied
		}
		tt.rows = slices.Delete(tt.rows, i, i+1)
		tt.fired[t] = time.Now().UnixMilli()
	}
	return nil
}

func (tt *timerTable) add(t machine.Timer) {
	tt.mu.Lock()
	defer tt.mu.Unlock()
	tt.rows = append(tt.rows, t)
}

func timerAt(at int64, n int) machine.Timer {
	return machine.Timer{At: at, ID: ids.Invocation{byte(n), byte(n >> 8), byte(n >> 16)}}
}

func runTimers(t *testing.T, tt *timerTable) *timers {
	tm := newTimers(func() int64 { return time.Now().UnixMilli() }, tt.load, tt.fire)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, tm.Run(ctx)) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return tm
}

func TestTimersFireOnTimeAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().UnixMilli()
		tt := &timerTable{fired: map[machine.Timer]int64{}}
		early := timerAt(start-5, 1)
		tt.add(early)
		tm := runTimers(t, tt)
		synctest.Wait()
		require.Equal(t, start, tt.fired[early], "overdue ones fire at once")

		var want []machine.Timer
		for i, after := range []time.Duration{time.Millisecond, 3 * time.Second, 10 * time.Minute, 29 * time.Second, 31 * time.Second, 61 * time.Second, 24 * time.Hour} {
			timer := timerAt(start+after.Milliseconds(), 10+i)
			tt.add(timer)
			tm.set(timer)
			want = append(want, timer)
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		for _, timer := range want {
			require.Equal(t, timer.At, tt.fired[timer], "due %d ms after the start", timer.At-start)
		}
		require.Empty(t, tt.rows)
	})
}

func TestDistantTimersUseNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tt := &timerTable{fired: map[machine.Timer]int64{}}
		tm := runTimers(t, tt)
		synctest.Wait()
		for i := range 1000 {
			timer := timerAt(time.Now().Add(24*time.Hour).UnixMilli(), i)
			tt.add(timer)
			tm.set(timer)
		}
		require.Empty(t, tm.pending)
	})
}

// A leader holds a bounded number of timers, however many are due at the same time, and fires
// each of them.
func TestTimersInMemoryAreBounded(t *testing.T) {
	const count = 3*timerLimit + 10
	few := func(i int) machine.Timer { return timerAt(1000+int64(i/1000), i) }
	tests := map[string]struct {
		timer func(i int) machine.Timer
		count int
		set   int // of them are set while the queue runs, the others before
	}{
		"loaded":                          {few, count, 0},
		"loaded, of one millisecond":      {func(i int) machine.Timer { return timerAt(1000, i) }, count, 0},
		"loaded, with long names":         {longTimer, 300, 0},
		"set":                             {few, count, count},
		"set, of one millisecond":         {func(i int) machine.Timer { return timerAt(1000, i) }, count, count},
		"set, the later ones first":       {func(i int) machine.Timer { return few(count - i) }, count, count},
		"set, with long names":            {longTimer, 300, 300},
		"set while others are in the way": {few, count, count / 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now().UnixMilli()
				rows := make([]machine.Timer, test.count)
				for i := range rows {
					rows[i] = test.timer(i)
					rows[i].At += start
				}
				table := &timerTable{rows: slices.Clone(rows[test.set:])}
				table.rows = slices.Grow(table.rows, test.set)
				var tm *timers
				held, heldBytes := 0, 0
				observe := func() {
					tm.mu.Lock()
					defer tm.mu.Unlock()
					held = max(held, len(tm.pending))
					sum := 0
					for _, timer := range tm.pending {
						sum += len(timer.Name)
					}
					require.Equal(t, sum, tm.bytes)
					heldBytes = max(heldBytes, sum)
				}
				load := func(from, before machine.Timer) ([]machine.Timer, bool, error) {
					due, more, err := table.load(from, before)
					require.LessOrEqual(t, len(due), timerLimit)
					return due, more, err
				}
				fired := map[machine.Timer]bool{}
				fire := func(_ context.Context, due []machine.Timer) error {
					observe()
					for _, d := range due {
						require.LessOrEqual(t, d.At, time.Now().UnixMilli(), "never early")
						fired[d] = true
					}
					return nil
				}
				tm = newTimers(func() int64 { return time.Now().UnixMilli() }, load, fire)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { require.NoError(t, tm.Run(ctx)) })
				defer wg.Wait()
				defer cancel()
				synctest.Wait()
				for i, timer := range rows[:test.set] {
					table.add(timer)
					tm.set(timer)
					if i%(timerLimit/2) == 0 {
						observe()
					}
				}
				observe()
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				require.Len(t, fired, test.count)
				require.LessOrEqual(t, held, 2*timerLimit)
				require.LessOrEqual(t, heldBytes, 2*timerLimitBytes+len(longTimer(0).Name))
			})
		})
	}
}

// longTimer is a timer with a name of 100 KiB.
func longTimer(i int) machine.Timer {
	return machine.Timer{At: 1000, Kind: machine.TimerPromise, Completion: uint32(i), Name: strings.Repeat("x", 100<<10)}
}

// The leader's clock jumps while Go timers stop, as after suspension. Timers that are then
// due fire within timerCheck.
func TestTimersFireAfterSuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var suspended atomic.Int64
		now := func() int64 { return time.Now().UnixMilli() + suspended.Load() }
		table := &timerTable{fired: map[machine.Timer]int64{}}
		for i := range int64(3) {
			table.add(machine.Timer{At: now() + 3_600_000*(i+1), ID: ids.Invocation{byte(i)}})
		}
		timers := newTimers(now, table.load, table.fire)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { require.NoError(t, timers.Run(ctx)) })
		time.Sleep(time.Minute)
		suspended.Add(2 * 3_600_000)
		time.Sleep(timerCheck)
		synctest.Wait()
		require.Len(t, table.fired, 2)
		cancel()
		done.Wait()
	})
}

// An entry for each timer would take seconds if thousands of sleeps end together.
func TestDueTimersFireTogether(t *testing.T) {
	tm := newTimers(func() int64 { return 2 }, nil, nil)
	tm.horizon.At = 10
	for i := range timerBatch + 10 {
		tm.set(timerAt(1, i))
	}
	tm.set(timerAt(3, 0))
	require.Len(t, tm.takeDue(2), timerBatch)
	require.Len(t, tm.takeDue(2), 10)
	require.Empty(t, tm.takeDue(2))
}

// Batches of due timers do not wait for each other's outcome.
func TestSeveralBatchesOfTimersAreInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seal := func([][]byte) ([]byte, error) { return nil, nil }
		proposer, err := raftgroup.NewProposer[machine.Outcome](new(raftgroup.Group), raftgroup.ProposerConfig{Seal: seal})
		require.NoError(t, err) // it is not running, so nothing has an outcome
		l := &leadership{
			p: &Partition{cfg: Config{Level: func() feature.Level { return feature.Newest }}}, proposer: proposer, firing: newFiring(),
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		for range maxFiring {
			require.NoError(t, l.fireTimers(ctx, []machine.Timer{timerAt(1, 1)}))
		}
		ended := make(chan error, 1)
		go func() { ended <- l.fireTimers(ctx, []machine.Timer{timerAt(1, 2)}) }()
		synctest.Wait()
		require.Empty(t, ended, "but no more than maxFiring")
		cancel(errDeposed)
		require.ErrorIs(t, <-ended, errDeposed)
	})
}

// Timers that were not fired because their proposal failed fire later.
func TestTimersThatWereNotFiredAreRequeued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := &timerTable{fired: map[machine.Timer]int64{}}
		due := timerAt(time.Now().UnixMilli(), 1)
		table.add(due)
		var tm *timers
		failed := false
		fire := func(ctx context.Context, timers []machine.Timer) error {
			if !failed {
				failed = true
				tm.requeue(timers)
				return nil
			}
			return table.fire(ctx, timers)
		}
		tm = newTimers(func() int64 { return time.Now().UnixMilli() }, table.load, fire)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { require.NoError(t, tm.Run(ctx)) })
		synctest.Wait()
		require.Contains(t, table.fired, due)
		cancel()
		wg.Wait()
	})
}

// A timer is named by a promise, whose name may be long.
// The name of a scope is a part of the log entry of an invocation in it, which may have megabytes.
func TestTimersDoNotRetainLogEntries(t *testing.T) {
	tm := newTimers(func() int64 { return 1 }, nil, nil)
	tm.horizon.At = 10
	set := func() weak.Pointer[byte] {
		entry := make([]byte, 1<<20)
		tm.set(machine.Timer{At: 5, Kind: machine.TimerQueue, Name: unsafe.String(&entry[0], 4)})
		return weak.Make(&entry[0])
	}
	entry := set()
	runtime.GC()
	require.Nil(t, entry.Value())
	require.Len(t, tm.pending, 1)
}

func TestTimersWithLongNamesFitIntoACommand(t *testing.T) {
	tt := newTimers(func() int64 { return 1 }, nil, nil)
	long := strings.Repeat("x", 20<<20)
	const count = 3
	for i := range uint32(count) {
		tt.pending = append(tt.pending, machine.Timer{At: 1, Kind: machine.TimerPromise, Completion: i, Name: long})
	}
	fired := 0
	for {
		due := tt.takeDue(1)
		if len(due) == 0 {
			break
		}
		c := &machine.FireTimers{Timers: due}
		data, err := codec.EncodeCommand(feature.Level4, c)
		require.NoError(t, err)
		require.NoError(t, checkCommandSize(feature.Level4, c, len(data)), "%d timers", len(due))
		require.LessOrEqual(t, len(data), codec.CommandSize(c))
		fired += len(due)
	}
	require.Equal(t, count, fired)
}
