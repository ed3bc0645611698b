package lifecycle

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

// reportInterval is how often a shutdown logs what it waits for.
const reportInterval = 5 * time.Second

// Shutdown limits the duration of a shutdown. After the timeout, the process exits: acknowledged
// work is in the log, and a hanging process would prevent the next start.
type Shutdown struct {
	limit time.Duration // shutdown-timeout
	exit  func()        // ends the process
	log   *slog.Logger

	mu          sync.Mutex // covers the fields below
	deadline    time.Time  // zero: the node is not stopping
	timer       *time.Timer
	report      *time.Timer // of the next report; nil once the shutdown is complete
	stage       string
	entered     time.Time // when the stage began
	longest     string    // stage so far, which took longestTook
	longestTook time.Duration
}

// NewShutdown returns the limit of a shutdown that has not begun. limit is shutdown-timeout.
func NewShutdown(limit time.Duration, log *slog.Logger) *Shutdown {
	return &Shutdown{limit: limit, exit: func() { os.Exit(1) }, log: log}
}

// Begin starts the timer on the first call.
func (s *Shutdown) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.IsZero() {
		return
	}
	s.deadline = time.Now().Add(s.limit)
	s.timer = time.AfterFunc(s.limit, s.expire)
	s.report = time.AfterFunc(reportInterval, s.reportStage)
}

// reportStage logs what the shutdown waits for.
func (s *Shutdown) reportStage() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return
	}
	s.log.Info("server is still stopping", "waits_for", s.stage, "exits_within", time.Until(s.deadline).Round(time.Second))
	s.report.Reset(reportInterval)
}

// Enter records what the shutdown waits for.
func (s *Shutdown) Enter(stage string) {
	s.Begin()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked()
	s.stage = stage
}

// leaveLocked notes the duration of the current stage.
func (s *Shutdown) leaveLocked() {
	now := time.Now()
	if took := now.Sub(s.entered); s.stage != "" && took > s.longestTook {
		s.longest, s.longestTook = s.stage, took
	}
	s.entered = now
}

// Context returns a context that ends shortly before the timeout, which leaves time for the
// remaining steps.
func (s *Shutdown) Context() (context.Context, context.CancelFunc) {
	s.Begin()
	s.mu.Lock()
	defer s.mu.Unlock()
	return context.WithDeadline(context.Background(), s.deadline.Add(-s.limit/20))
}

// Complete records that the shutdown is complete.
func (s *Shutdown) Complete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		return
	}
	s.timer.Stop()
	s.report.Stop()
	s.report = nil
	s.leaveLocked()
	s.log.Info("server stopped", "took", time.Since(s.deadline.Add(-s.limit)), "longest_wait", s.longest, "waited", s.longestTook)
}

func (s *Shutdown) expire() {
	s.mu.Lock()
	stage := s.stage
	s.mu.Unlock()
	stacks := make([]byte, maxStacks)
	stacks = stacks[:runtime.Stack(stacks, true)]
	s.log.Error("shutdown timed out, exiting; the next start continues from the log",
		"shutdown_timeout", s.limit, "waits_for", stage, "stacks", string(stacks))
	s.exit()
}
