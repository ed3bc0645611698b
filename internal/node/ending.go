package node

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"
)

// maxStacks bounds what is logged of the goroutines of a node that does not end.
const maxStacks = 1 << 20

// ending bounds the shutdown of a node. When the time is up, the process exits: acknowledged work
// is in the log, and a process that hangs would prevent its successor from starting.
type ending struct {
	limit time.Duration // shutdown-timeout
	exit  func()        // ends the process
	log   *slog.Logger

	mu    sync.Mutex // covers what follows
	by    time.Time  // zero: the node does not stop
	last  *time.Timer
	stage string
}

func newEnding(limit time.Duration, log *slog.Logger) *ending {
	return &ending{limit: limit, exit: func() { os.Exit(1) }, log: log}
}

// begin starts the timer on the first call.
func (e *ending) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.by.IsZero() {
		return
	}
	e.by = time.Now().Add(e.limit)
	e.last = time.AfterFunc(e.limit, e.giveUp)
}

// enter records what the node now waits for.
func (e *ending) enter(stage string) {
	e.begin()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stage = stage
}

// context ends shortly before the time is up, so that some is left for what follows.
func (e *ending) context() (context.Context, context.CancelFunc) {
	e.begin()
	e.mu.Lock()
	defer e.mu.Unlock()
	return context.WithDeadline(context.Background(), e.by.Add(-e.limit/20))
}

// over records that the node has ended in order.
func (e *ending) over() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last != nil {
		e.last.Stop()
	}
}

func (e *ending) giveUp() {
	e.mu.Lock()
	stage := e.stage
	e.mu.Unlock()
	stacks := make([]byte, maxStacks)
	stacks = stacks[:runtime.Stack(stacks, true)]
	e.log.Error("the server does not stop in the time it has, exiting; the next start continues from the log",
		"shutdown_timeout", e.limit, "waits_for", stage, "stacks", string(stacks))
	e.exit()
}
