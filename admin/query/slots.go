package query

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"platform/internal/access"
)

// slots bound the queries that run concurrently. No client can keep out others, however many queries
// it sends: a client that holds a slot does not get the last free one, except the server itself, and
// a free slot goes to the client that holds the fewest or, among several, got its last one first.
type slots struct {
	limit int

	mu      sync.Mutex // covers the fields below
	used    int
	taken   uint64 // number of slots that have been taken so far
	clients map[access.Client]*slotClient
	waiting []*slotWaiter // the oldest first
}

// slotClient is a client that holds slots or waits for some.
type slotClient struct {
	held, waiting int
	last          uint64 // number of its last slot; 0: none
}

// slotWaiter is a query that waits for a slot.
type slotWaiter struct {
	client  access.Client
	granted chan struct{} // closed once the slot is taken
}

func newSlots(limit int) *slots {
	return &slots{limit: limit, clients: map[access.Client]*slotClient{}}
}

// acquire takes a slot for a client, for which it waits up to a timeout. The slot must be released.
func (s *slots) acquire(ctx context.Context, client access.Client, timeout time.Duration) error {
	w := &slotWaiter{client: client, granted: make(chan struct{})}
	s.mu.Lock()
	if s.clients[client] == nil {
		s.clients[client] = &slotClient{}
	}
	s.clients[client].waiting++
	s.waiting = append(s.waiting, w)
	s.grantLocked()
	s.mu.Unlock()

	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-w.granted:
		return nil
	default:
	}
	var err error
	select {
	case <-w.granted:
		return nil
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 { // granted meanwhile
		return nil
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	c := s.clients[client]
	c.waiting--
	if err == nil {
		err = s.busy(c.held)
	}
	s.forgetLocked(client)
	return err
}

// busy returns the error of a query of a client that holds slots and did not get another one.
func (s *slots) busy(held int) error {
	if held > 0 && s.used < s.limit {
		return fmt.Errorf("%w: %d of this client, which leaves one slot of %d for others (admin.query-engine.concurrency); wait until one of them has ended", ErrBusy, held, s.limit)
	}
	return fmt.Errorf("%w: %d at a time (admin.query-engine.concurrency); try again in a moment", ErrBusy, s.limit)
}

// release gives back the slot of a client.
func (s *slots) release(client access.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	s.clients[client].held--
	s.grantLocked()
	s.forgetLocked(client)
}

// grantLocked gives free slots to those that wait.
func (s *slots) grantLocked() {
	for s.used < s.limit {
		next := -1
		var of *slotClient
		for i, w := range s.waiting {
			c := s.clients[w.client]
			if c.held > 0 && s.used == s.limit-1 && w.client != "" {
				continue
			}
			if of == nil || c.held < of.held || c.held == of.held && c.last < of.last {
				next, of = i, c
			}
		}
		if of == nil {
			return
		}
		w := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.taken++
		s.used++
		of.held, of.waiting, of.last = of.held+1, of.waiting-1, s.taken
		close(w.granted)
	}
}

// forgetLocked removes a client that neither holds slots nor waits.
func (s *slots) forgetLocked(client access.Client) {
	if c := s.clients[client]; c.held == 0 && c.waiting == 0 {
		delete(s.clients, client)
	}
}
