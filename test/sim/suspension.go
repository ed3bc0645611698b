package sim

import (
	"math/rand/v2"
	"time"
)

// Machines that are suspended: the time of day and the time since boot jump, while Go's clock, and
// with it all timers, stops. All nodes are on one machine.

const (
	maxNap = time.Hour // of the sleepers
	// maxLateness is how late sleepers wake after a suspension of a healthy cluster.
	maxLateness = 5 * time.Second
)

// now is the time of day of a correct clock.
func (s *Sim) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.suspended)
}

func (s *Sim) suspendMachine(d time.Duration) {
	if hooks.suspend == nil {
		return
	}
	s.trace.add("the machine was suspended for %s", d.Round(time.Millisecond))
	s.mu.Lock()
	s.suspended += d
	s.mu.Unlock()
	hooks.suspend(d)
}

func (s *Sim) suspend(rng *rand.Rand) func() {
	s.suspendMachine(time.Duration(rng.ExpFloat64() * float64(maxNap/4)))
	return nil
}

// checkSuspension suspends the machine until all sleepers are due, which must then wake.
func (s *Sim) checkSuspension() {
	s.suspendMachine(maxNap)
	begin := time.Now()
	if !s.waitUntil(responseTimeout, func() bool { return s.history.asleep() == "" }) {
		s.violate("late: %s does not wake %s after a suspension", s.history.asleep(), responseTimeout)
	} else if late := time.Since(begin); late > maxLateness {
		s.violate("late: sleepers woke %s after a suspension", late)
	}
}
