package kafka

import (
	"context"
	"time"

	"platform/partition/store"
)

const (
	// garbageDelay is the time between searches for rows of ended subscriptions.
	garbageDelay = time.Minute
	// garbageAge is how long they are kept: a reader that does not know yet that it was
	// replaced may still send.
	garbageAge = 10 * time.Minute
)

// collectGarbage deletes what a partition stores about incarnations that have ended, until ctx
// ends.
func (e *Engine) collectGarbage(ctx context.Context, o *owner) {
	tick := time.NewTicker(garbageDelay)
	defer tick.Stop()
	dead := map[store.Incarnation]time.Time{}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		e.forget(ctx, o, dead, time.Now())
	}
}

// forget deletes the rows of incarnations that were found dead long enough ago.
func (e *Engine) forget(ctx context.Context, o *owner, dead map[store.Incarnation]time.Time, now time.Time) {
	subscriptions, _ := e.cfg.Source.Subscriptions()
	current := make(map[string]uint64, len(subscriptions))
	for i := range subscriptions {
		current[subscriptions[i].ID] = subscriptions[i].Incarnation
	}
	found, err := o.Incarnations()
	if err != nil {
		return
	}
	positions, err := o.Positions()
	if err != nil {
		return
	}
	for _, p := range positions {
		if _, exists := current[p.Stream.Subscription]; !exists {
			found = append(found, store.Incarnation{Subscription: p.Stream.Subscription, Number: p.Stream.Incarnation})
		}
	}
	seen := make(map[store.Incarnation]bool, len(found))
	for _, i := range found {
		number, exists := current[i.Subscription]
		if exists && i.Number >= number {
			continue
		}
		seen[i] = true
		since, known := dead[i]
		if !known {
			dead[i] = now
			continue
		}
		if now.Sub(since) < garbageAge {
			continue
		}
		before := number // 0: the subscription does not exist
		if err := o.Forget(ctx, i.Subscription, before); err != nil {
			return
		}
		delete(dead, i)
	}
	for i := range dead {
		if !seen[i] {
			delete(dead, i)
		}
	}
}
