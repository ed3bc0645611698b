package partition

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/target"
	"platform/partition/machine"
)

// worker is a service that records what its handlers did: three steps, and a counter per
// key.
//
// An attempt of a previous leader continues in the service until the service notices that
// it was aborted, and may start one more step concurrently with the attempt of the next
// leader. That step has no effect: its result is refused, so the handler never receives it.
// A step counts as repeated if a handler received a later result of it.
type worker struct {
	mu    sync.Mutex
	acked map[string]int // step: which execution produced the result that a handler received
	again []string       // steps with a different result after that
	cut   int            // executions of steps that had been acknowledged
	runs  int
	// crashes counts power losses: a result that a handler receives during one is not
	// certainly acknowledged.
	crashes atomic.Int64
}

func newWorker() *worker { return &worker{acked: map[string]int{}} }

func (w *worker) definitions() []restate.ServiceDefinition {
	steps := restate.NewService("Steps").
		Handler("do", restate.NewServiceHandler(w.steps)).
		Handler("sum", restate.NewServiceHandler(sumOf))
	counter := restate.NewObject("Counter").Handler("add", restate.NewObjectHandler(
		func(ctx restate.ObjectContext, by int) (int, error) {
			n, err := restate.Get[int](ctx, "n")
			if err != nil {
				return 0, err
			}
			restate.Set(ctx, "n", n+by)
			return n + by, nil
		}))
	return []restate.ServiceDefinition{steps, counter}
}

func (w *worker) steps(ctx restate.Context, name string) (int, error) {
	for i := range 3 {
		step, crashes := fmt.Sprint(name, "/", i), w.crashes.Load()
		run, err := restate.Run(ctx, func(restate.RunContext) (int, error) { return w.run(step), nil })
		if err != nil {
			return 0, err
		}
		if w.crashes.Load() == crashes {
			w.acknowledged(step, run)
		}
	}
	return 6, nil
}

// sumOf returns the checksum of its input, which passes through a step.
func sumOf(ctx restate.Context, input string) (uint32, error) {
	kept, err := restate.Run(ctx, func(restate.RunContext) (string, error) { return input, nil })
	return crc32.ChecksumIEEE([]byte(kept)), err
}

// run executes a step. The result is the number of the execution.
func (w *worker) run(step string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs++
	if w.acked[step] != 0 {
		w.cut++
	}
	return w.runs
}

// acknowledged records that a handler received the result of a step.
func (w *worker) acknowledged(step string, run int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.acked[step]; first != 0 && first != run {
		w.again = append(w.again, step)
	}
	w.acked[step] = run
}

// load is a number of clients that call continuously.
type load struct {
	c        *replicaSet
	w        *worker
	acks     atomic.Int64
	large    atomic.Int64 // responses to calls with large inputs
	last     atomic.Int64 // time of the last response, in ns
	longest  atomic.Int64 // between two responses, in ns
	added    [loadKeys]atomic.Int64
	clients  sync.WaitGroup
	finished chan struct{}
}

const (
	loadKeys    = 4
	loadClients = 8
	// loadTimeout bounds a call. On a busy machine calls beside large ones take minutes.
	loadTimeout = 5 * time.Minute
)

func startLoad(c *replicaSet, w *worker) *load {
	l := &load{c: c, w: w, finished: make(chan struct{})}
	l.last.Store(time.Now().UnixNano())
	for i := range loadClients {
		l.clients.Go(func() { l.client(i) })
	}
	return l
}

func (l *load) client(id int) {
	for n := 0; ; n++ {
		select {
		case <-l.finished:
			return
		default:
		}
		if id%2 == 0 {
			l.ask(request("Steps", "do", fmt.Sprintf(`"%d-%d"`, id, n)), "6")
			continue
		}
		key := id / 2 % loadKeys
		inv := request("Counter", "add", "1")
		inv.Target.Key, inv.Target.Type = fmt.Sprint(key), target.ObjectExclusive
		l.ask(inv, "")
		l.added[key].Add(1)
	}
}

// largeClient calls with inputs whose log entries are table files.
func (l *load) largeClient(rng *rand.Rand) {
	for {
		select {
		case <-l.finished:
			return
		default:
		}
		input := bytes.Repeat([]byte{'a' + byte(rng.IntN(26))}, 4<<20+rng.IntN(16<<20))
		for i := 0; i < len(input); i += 1 << 10 {
			input[i] = 'a' + byte(rng.IntN(26))
		}
		inv := request("Steps", "sum", fmt.Sprintf("%q", input))
		inv.Retention = machine.Retention{}
		l.ask(inv, fmt.Sprint(crc32.ChecksumIEEE(input))) // it starts again after each power loss
		l.large.Add(1)
	}
}

func (l *load) ask(inv *machine.Invoke, want string) {
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	e, err := l.c.call(ctx, inv)
	if err != nil {
		l.c.t.Errorf("call of %v: %v", inv.Target, err)
		return
	}
	if e.Result.Failure != nil || want != "" && string(e.Result.Value) != want {
		l.c.t.Errorf("call of %v: %+v", inv.Target, e.Result)
	}
	l.acks.Add(1)
	now := time.Now().UnixNano()
	gap := now - l.last.Swap(now)
	for old := l.longest.Load(); gap > old && !l.longest.CompareAndSwap(old, gap); old = l.longest.Load() {
	}
}

// progress waits for n more responses.
func (l *load) progress(n int64) {
	l.c.t.Helper()
	want := l.acks.Load() + n
	require.Eventually(l.c.t, func() bool { return l.acks.Load() >= want }, loadTimeout, time.Millisecond)
}

// progressLarge waits for n more responses to calls with large inputs.
func (l *load) progressLarge(n int64) {
	l.c.t.Helper()
	want := l.large.Load() + n
	require.Eventually(l.c.t, func() bool { return l.large.Load() >= want }, loadTimeout, time.Millisecond)
}

// gap returns the longest time without a response since the last call of gap.
func (l *load) gap() time.Duration {
	return time.Duration(max(l.longest.Swap(0), time.Now().UnixNano()-l.last.Load()))
}

// finish stops the clients and compares their results with those of the services.
func (l *load) finish(t *testing.T) {
	t.Helper()
	close(l.finished)
	l.clients.Wait()
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	require.Empty(t, l.w.again, "acknowledged steps were repeated")
	for key := range l.added {
		inv := request("Counter", "add", "0")
		inv.Target.Key, inv.Target.Type = fmt.Sprint(key), target.ObjectExclusive
		e, err := l.c.call(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(l.added[key].Load()), string(e.Result.Value), "counter %d", key)
	}
	t.Logf("%d responses, %d steps acknowledged, %d executed, %d of them by aborted attempts", l.acks.Load(), len(l.w.acked), l.w.runs, l.w.cut)
}

func TestWorkerDistinguishesAbortedAttemptsFromRepeatedSteps(t *testing.T) {
	w := newWorker()
	w.acknowledged("s", w.run("s"))
	w.run("s") // and its result is never received
	require.Empty(t, w.again)
	require.Equal(t, 1, w.cut)
	w.acknowledged("s", 1) // by a replay
	require.Empty(t, w.again)
	w.acknowledged("s", w.run("s"))
	require.Equal(t, []string{"s"}, w.again)
}
