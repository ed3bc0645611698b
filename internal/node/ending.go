package node

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"
)

// maxStacks limits the size of the goroutine dump of a shutdown that hangs.
const maxStacks = 1 << 20

// ending limits the duration of a shutdown. After the timeout, the process exits: acknowledged
// work is in the log, and a hanging process would prevent the next start.
type ending struct {
	limit time.Duration // shutdown-timeout
	exit  func()        // ends the process
	log   *slog.Logger

	mu    sync.Mutex // covers the fields below
	by    time.Time  // zero: the node is not stopping
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

// enter records what the shutdown waits for.
func (e *ending) enter(stage string) {
	e.begin()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stage = stage
}

// context returns a context that ends shortly before the timeout, which leaves time for the
// remaining steps.
func (e *ending) context() (context.Context, context.CancelFunc) {
	e.begin()
	e.mu.Lock()
	defer e.mu.Unlock()
	return context.WithDeadline(context.Background(), e.by.Add(-e.limit/20))
}

// over records that the shutdown is complete.
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
	e.log.Error("shutdown timed out, exiting; the next start continues from the log",
		"shutdown_timeout", e.limit, "waits_for", stage, "stacks", string(stacks))
	e.exit()
}
