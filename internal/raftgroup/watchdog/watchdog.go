// Package watchdog reports operations on a disk that are slow, and ends the process if one hangs.
package watchdog

import (
	"cmp"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Config defines when an operation on the log or the state counts as slow or hung
// and what happens then. Zero values mean the defaults.
type Config struct {
	// Slow is the duration after which a group gives up its leadership, unless it has no
	// other voter; 2 s.
	Slow time.Duration
	// Hung is the duration after which the process exits; 10 s. A write that may still
	// complete must never be reported as failed, so there is no other way out.
	Hung time.Duration
	// LogProgress and StateProgress count what the log database and the state database write
	// in the background, see WriteProgress. While a count grows, operations on that database
	// are not hung: they may have to wait until flushes and compactions have caught up. nil:
	// operations never wait for that.
	LogProgress   func() uint64
	StateProgress func() uint64
	// Tick is the interval of the checks; 250 ms.
	Tick time.Duration
	// Exit exits the process; nil: closes all sockets and calls os.Exit(1).
	Exit func()
	// Logger is slog.Default() when nil.
	Logger *slog.Logger
}

// Watchdog watches the operations on log and state of all groups of a node with one
// goroutine. Time in which the process itself was paused, or its machine suspended, does
// not count.
type Watchdog struct {
	cfg  Config
	stop chan struct{}
	done chan struct{}
	wg   sync.WaitGroup // of slow callbacks

	// mu covers the fields below.
	mu        sync.Mutex
	ops       map[*Operation]struct{} // in progress
	checkedAt time.Time               // last check
	log       advance                 // of the log database
	state     advance                 // of the state database
	ran       time.Duration           // how long the process had run by then
}

// The kinds of operations on the state. All others are on the log.
const (
	Apply = "apply"
	Flush = "flush"
)

// Operation is an operation in progress.
type Operation struct {
	probe   *Probe
	kind    string
	started time.Duration // as Watchdog.ran
	warned  bool
}

// advance is when a count of Config grew last.
type advance struct {
	count uint64
	at    time.Duration // as Watchdog.ran
}

func (a *advance) read(count func() uint64, ran time.Duration) {
	if count == nil {
		return
	}
	if n := count(); n != a.count {
		a.count, a.at = n, ran
	}
}

// Probe is one group's interface to the watchdog. A nil Probe watches nothing.
type Probe struct {
	dog   *Watchdog
	group string
	slow  func()
	late  atomic.Int32 // slow operations in progress
}

// New starts a watchdog; Close stops it.
func New(cfg Config) *Watchdog {
	cfg.Slow = cmp.Or(cfg.Slow, 2*time.Second)
	cfg.Hung = cmp.Or(cfg.Hung, 10*time.Second)
	cfg.Tick = cmp.Or(cfg.Tick, 250*time.Millisecond)
	if cfg.Exit == nil {
		cfg.Exit = func() {
			closeSockets()
			os.Exit(1)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	w := &Watchdog{
		cfg:  cfg,
		stop: make(chan struct{}),
		done: make(chan struct{}),
		ops:  make(map[*Operation]struct{}),

		checkedAt: time.Now(),
	}
	go w.run()
	return w
}

// Close stops watching.
func (w *Watchdog) Close() {
	close(w.stop)
	<-w.done
	w.wg.Wait()
}

// Probe registers a group; slow is called, in a separate goroutine, once for each slow
// operation.
func (w *Watchdog) Probe(group string, slow func()) *Probe {
	if w == nil {
		return nil
	}
	return &Probe{dog: w, group: group, slow: slow}
}

// Begin records that an operation begins; End must be called when it has ended.
func (p *Probe) Begin(kind string) *Operation {
	if p == nil {
		return nil
	}
	w := p.dog
	op := &Operation{probe: p, kind: kind}
	w.mu.Lock()
	defer w.mu.Unlock()
	op.started = w.ran + w.sinceLocked(time.Now())
	w.ops[op] = struct{}{}
	return op
}

// End records that the operation has ended.
func (op *Operation) End() {
	if op == nil {
		return
	}
	w := op.probe.dog
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ops, op)
	if op.warned {
		op.probe.late.Add(-1)
	}
}

// Hangs reports whether an operation of the group is taking too long.
func (p *Probe) Hangs() bool { return p != nil && p.late.Load() > 0 }

func (w *Watchdog) run() {
	defer close(w.done)
	tick := time.NewTicker(w.cfg.Tick)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case now := <-tick.C:
			w.check(now)
		}
	}
}

// sinceLocked returns how long the process has run since the last check. The checking
// goroutine runs once per tick, unless the process is paused.
func (w *Watchdog) sinceLocked(now time.Time) time.Duration {
	return min(max(now.Sub(w.checkedAt), 0), 2*w.cfg.Tick)
}

// check reports operations that are slow, and ends the process if the disk or the state machine hangs.
func (w *Watchdog) check(now time.Time) {
	var slow []*Operation
	var hung *Operation
	w.mu.Lock()
	w.ran += w.sinceLocked(now)
	w.checkedAt = now
	ran := w.ran
	w.log.read(w.cfg.LogProgress, ran)
	w.state.read(w.cfg.StateProgress, ran)
	for op := range w.ops {
		age := ran - op.started
		if age >= w.cfg.Slow && !op.warned {
			op.warned = true
			op.probe.late.Add(1)
			slow = append(slow, op)
		}
		db := &w.log
		if op.kind == Apply || op.kind == Flush {
			db = &w.state
		}
		if min(age, ran-db.at) >= w.cfg.Hung {
			hung = op
		}
	}
	w.mu.Unlock()

	for _, op := range slow {
		w.cfg.Logger.Warn("storage operation is slow",
			"group", op.probe.group, "operation", op.kind, "duration", ran-op.started)
		w.wg.Go(op.probe.slow)
	}
	if hung == nil {
		return
	}
	stacks := stacks() // which takes a while
	if !w.runs(hung) {
		return
	}
	w.cfg.Logger.Error("storage operation hangs; exiting", "group", hung.probe.group,
		"operation", hung.kind, "duration", ran-hung.started, "stacks", stacks)
	w.cfg.Exit()
}

// runs reports whether an operation has not ended.
func (w *Watchdog) runs(op *Operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.ops[op]
	return ok
}

// stacks returns the stacks of all goroutines, at most 4 MiB.
func stacks() string {
	buf := make([]byte, 4<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
