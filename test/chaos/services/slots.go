package main

import (
	"sync"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// slots counts concurrent invocations, for tests of concurrency limits.
func slots(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	s := &slotService{running: map[string]int{}}
	return restate.NewService("Slots", retry).
		Handler("hold", restate.NewServiceHandler(s.hold)).
		Handler("report", restate.NewServiceHandler(s.report))
}

type slotService struct {
	mu           sync.Mutex
	running      map[string]int // running attempts by invocation
	usage        history.SlotUsage
	countedUntil time.Time // end of the time included in usage.Held
}

// hold takes d, or ends early when the server closes the connection.
func (c *slotService) hold(ctx restate.Context, d time.Duration) (restate.Void, error) {
	id := ctx.Request().ID
	c.add(id, 1)
	defer c.add(id, -1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.usage.Completed++
		return restate.Void{}, nil
	case <-ctx.Done():
		return restate.Void{}, ctx.Err()
	}
}

// add adds n to the running attempts of an invocation.
func (c *slotService) add(id string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accumulate()
	if c.running[id] += n; c.running[id] == 0 {
		delete(c.running, id)
	}
	c.usage.Peak = max(c.usage.Peak, len(c.running))
}

// accumulate adds the hold time up to now; the caller holds the lock.
func (c *slotService) accumulate() {
	now := time.Now()
	if !c.countedUntil.IsZero() {
		c.usage.Held += time.Duration(len(c.running)) * now.Sub(c.countedUntil)
	}
	c.countedUntil = now
}

func (c *slotService) report(restate.Context, restate.Void) (history.SlotUsage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accumulate()
	return c.usage, nil
}
