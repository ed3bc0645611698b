package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"platform/internal/failpoint"
)

// hooks are functions that only the program that runs seeds provides, since it is built with
// failpoints.
var hooks struct {
	onPause func(func(failpoint.Name)) // failpoint.OnPause
	suspend func(time.Duration)        // boottime.Suspend
}

// pauses delays goroutines between two steps, as a busy machine does.
type pauses struct {
	mu     sync.Mutex // covers the fields below
	rng    *rand.Rand
	active bool
}

// pauseSteps are the frequency of pauses before a step, once in so many passes, and their average
// duration. Those of leaders that come and go are long enough for another leader.
var pauseSteps = map[failpoint.Name]struct {
	oneIn int
	mean  time.Duration
}{
	failpoint.Duties:       {5, 20 * time.Millisecond},
	failpoint.Announcement: {3, 50 * time.Millisecond},
	failpoint.Leaving:      {2, 80 * time.Millisecond},
	failpoint.Confirmation: {40, 20 * time.Millisecond},
	failpoint.Application:  {300, 20 * time.Millisecond},
	failpoint.Effects:      {300, 20 * time.Millisecond},
}

const maxPause = 400 * time.Millisecond

func (s *Sim) initPauses() {
	rng := newRand(s.seed, "pauses")
	s.pauses.rng, s.pauses.active = rng, rng.IntN(3) > 0
	if hooks.onPause != nil {
		hooks.onPause(s.pauseBefore)
	}
}

func (s *Sim) pauseBefore(step failpoint.Name) {
	s.pauses.mu.Lock()
	var d time.Duration
	if p := pauseSteps[step]; s.pauses.active && s.pauses.rng.IntN(p.oneIn) == 0 {
		d = min(time.Duration(s.pauses.rng.ExpFloat64()*float64(p.mean)), maxPause)
	}
	s.pauses.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
}

func (s *Sim) endPauses() {
	s.pauses.mu.Lock()
	defer s.pauses.mu.Unlock()
	s.pauses.active = false
}
