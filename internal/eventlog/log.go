package eventlog

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Capacity is the number of events that a log keeps.
	Capacity = 1000
	// maxDetail is the length of a detail in bytes.
	maxDetail = 300
	// interval is the time between two views.
	interval = time.Second
)

// Log keeps the latest events of a node. It is safe for concurrent use.
type Log struct {
	view func() *View // nil as long as the node is not part of a cluster

	mu     sync.Mutex // covers events
	events []Event    // in ascending order of time, at most Capacity
}

// New returns a log of the changes of view.
func New(view func() *View) *Log { return &Log{view: view} }

// Run observes the cluster until ctx ends.
func (l *Log) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last *View
	for {
		if now := l.view(); now != nil {
			l.add(changesBetween(last, now))
			last = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *Log) add(events []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		if len(e.Detail) > maxDetail {
			e.Detail = strings.ToValidUTF8(e.Detail[:maxDetail], "")
		}
		l.events = append(l.events, e)
	}
	if over := len(l.events) - Capacity; over > 0 {
		l.events = slices.Delete(l.events, 0, over)
	}
}

// Events returns the events in ascending order of time.
func (l *Log) Events() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}
