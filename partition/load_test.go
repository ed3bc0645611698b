package partition

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

// worker is a service that knows what its handlers did: three steps, and a counter
// per key.
type worker struct {
	mu    sync.Mutex
	acked map[string]bool // step that the handler saw the result of
	again []string        // steps that ran after that
	runs  int
}

func (w *worker) definitions() []restate.ServiceDefinition {
	steps := restate.NewService("Steps").Handler("do", restate.NewServiceHandler(w.steps))
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
	sum := 0
	for i := range 3 {
		step := fmt.Sprint(name, "/", i)
		v, err := restate.Run(ctx, func(restate.RunContext) (int, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.runs++
			if w.acked[step] {
				w.again = append(w.again, step)
			}
			return i + 1, nil
		})
		if err != nil {
			return 0, err
		}
		w.mu.Lock()
		w.acked[step] = true
		w.mu.Unlock()
		sum += v
	}
	return sum, nil
}

// load is a number of clients that call without pause.
type load struct {
	c        *trio
	w        *worker
	acks     atomic.Int64
	last     atomic.Int64 // when, in ns
	longest  atomic.Int64 // between two answers, in ns
	added    [loadKeys]atomic.Int64
	clients  sync.WaitGroup
	finished chan struct{}
}

const (
	loadKeys    = 4
	loadClients = 8
)

func startLoad(c *trio, w *worker) *load {
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
		inv.Target.Key, inv.Target.Type = fmt.Sprint(key), machine.ObjectExclusive
		l.ask(inv, "")
		l.added[key].Add(1)
	}
}

func (l *load) ask(inv *machine.Invoke, want string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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

// progress waits for n more answers.
func (l *load) progress(n int64) {
	l.c.t.Helper()
	want := l.acks.Load() + n
	require.Eventually(l.c.t, func() bool { return l.acks.Load() >= want }, time.Minute, time.Millisecond)
}

// gap returns the longest time without an answer since the last call of gap.
func (l *load) gap() time.Duration {
	return time.Duration(max(l.longest.Swap(0), time.Now().UnixNano()-l.last.Load()))
}

// finish ends the clients and checks what they and the services know.
func (l *load) finish(t *testing.T) {
	t.Helper()
	close(l.finished)
	l.clients.Wait()
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	require.Empty(t, l.w.again, "acknowledged steps ran again")
	for key := range l.added {
		inv := request("Counter", "add", "0")
		inv.Target.Key, inv.Target.Type = fmt.Sprint(key), machine.ObjectExclusive
		e, err := l.c.call(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(l.added[key].Load()), string(e.Result.Value), "counter %d", key)
	}
	t.Logf("%d answers, %d steps acknowledged, %d executed", l.acks.Load(), len(l.w.acked), l.w.runs)
}
