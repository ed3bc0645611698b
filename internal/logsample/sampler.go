// Package logsample limits how often similar log messages are written.
package logsample

import (
	"sync"
	"time"
)

// Sampler admits a number of messages of each kind per window and counts the others. It is
// safe for concurrent use.
type Sampler[K comparable] struct {
	limit  int
	window time.Duration
	most   int

	mu    sync.Mutex // covers kinds
	kinds map[K]*count
}

// count is what is known of one kind.
type count struct {
	began         time.Time // of the window
	written, held int
}

// New returns a sampler that admits limit messages of a kind per window, and forgets all
// kinds when there are more than most.
func New[K comparable](limit int, window time.Duration, most int) *Sampler[K] {
	return &Sampler[K]{limit: limit, window: window, most: most, kinds: map[K]*count{}}
}

// Admit reports whether a message may be written now, and if so how many of its kind were
// held back since the last one.
func (s *Sampler[K]) Admit(kind K, now time.Time) (held int, admitted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.kinds[kind]
	if c == nil {
		if len(s.kinds) >= s.most {
			clear(s.kinds)
		}
		c = &count{began: now}
		s.kinds[kind] = c
	}
	if now.Sub(c.began) >= s.window {
		c.began, c.written = now, 0
	}
	if c.written == s.limit {
		c.held++
		return 0, false
	}
	held, c.held = c.held, 0
	c.written++
	return held, true
}
