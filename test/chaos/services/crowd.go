package main

import (
	"sync"
	"time"

	restate "github.com/restatedev/sdk-go"

	"platform/test/history"
)

// crowd counts who is inside at once, which is what limits are about.
func crowd(retry restate.ServiceDefinitionOption) restate.ServiceDefinition {
	c := &crowded{inside: map[string]int{}}
	return restate.NewService("Crowd", retry).
		Handler("stay", restate.NewServiceHandler(c.stay)).
		Handler("report", restate.NewServiceHandler(c.report))
}

type crowded struct {
	mu     sync.Mutex
	inside map[string]int // attempts by invocation
	seen   history.Crowd
	at     time.Time // until when time has been counted
}

// stay is inside for some time, or until the server has gone.
func (c *crowded) stay(ctx restate.Context, d time.Duration) (restate.Void, error) {
	id := ctx.Request().ID
	c.move(id, 1)
	defer c.move(id, -1)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen.Left++
		return restate.Void{}, nil
	case <-ctx.Done():
		return restate.Void{}, ctx.Err()
	}
}

// move counts an attempt that comes or goes.
func (c *crowded) move(id string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	if c.inside[id] += n; c.inside[id] == 0 {
		delete(c.inside, id)
	}
	c.seen.Most = max(c.seen.Most, len(c.inside))
}

// count counts the time until now; the caller holds the lock.
func (c *crowded) count() {
	now := time.Now()
	if !c.at.IsZero() {
		c.seen.Spent += time.Duration(len(c.inside)) * now.Sub(c.at)
	}
	c.at = now
}

func (c *crowded) report(restate.Context, restate.Void) (history.Crowd, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count()
	return c.seen, nil
}
