package invoker

import (
	"strings"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/invoker/protocol"
	"platform/partition/journal"
	"platform/partition/machine"
)

// stateSize bounds the size of the state of the object whose key an attempt holds. Only the
// attempt changes that state meanwhile, so what it starts with and what it writes are enough for
// an upper bound. The tables are read only when the bound exceeds the limit, or if the state was
// not sent as a whole and no earlier attempt has left a bound. The task's mutex covers it.
type stateSize struct {
	partial  bool // the state was not sent as a whole: the bound comes from other attempts, and is kept for them
	begun    bool // it is being changed
	known    bool
	bound    int // sum of the sizes of the entries, if known
	proposed int // steps of the attempt that were proposed
	settled  int // of these with a known outcome
	// writes are the keys that were written last, at least those that may not be in the tables
	// yet. They are forgotten when their number reaches prune.
	writes  map[string]stateWrite
	prune   int
	cleared int // the number of the last step that cleared all state, 0: none
}

// stateWrite is the size that a key has after a step.
type stateWrite struct {
	size int // what limits.StateEntry returns; 0: there is no value
	step int
}

// minPrune is the number of written keys from which those in the tables are forgotten, and
// maxSizes how many bounds a session keeps.
const (
	minPrune = 64
	maxSizes = 10_000
	// maxSizeKey is the length of keys up to which a session keeps bounds. The key of an object may
	// have megabytes; the state of such an object is measured again.
	maxSizeKey = 512
)

// changesStateLocked updates the size of the state for a command. It returns an error if the state
// would grow beyond the limit; commands that do not make it larger are always accepted. It
// releases t.mu while it reads the tables: the attempt may have ended when it returns.
func (a *attempt) changesStateLocked(t journal.Type, c *protocol.Command) error {
	limit := a.s.iv.cfg.StateSizeLimit
	if limit == 0 {
		return nil
	}
	z := &a.state
	switch t {
	case journal.ClearAllState:
		a.beginChangesLocked()
		z.known, z.bound, z.cleared = true, 0, z.proposed+len(a.progress.steps)+1
		clear(z.writes)
		a.keepLocked()
		return nil
	case journal.ClearState:
		return a.writesStateLocked(c.StateKey, 0, limit)
	case journal.SetState:
		return a.writesStateLocked(c.StateKey, limits.StateEntry(len(c.StateKey), c.ValueSize), limit)
	}
	return nil
}

// writesStateLocked is changesStateLocked for one key, whose new size is 0 if it is cleared.
func (a *attempt) writesStateLocked(key []byte, size, limit int) error {
	z := &a.state
	a.beginChangesLocked()
	if !z.known && size > 0 {
		if _, err := a.measureStateLocked(key); err != nil || !a.openLocked() {
			return err
		}
	}
	// Old sizes matter only close to the limit: without them the bound is too high.
	if z.known && z.bound+size > limit-limit/4 {
		old, known := z.old(key)
		if !known {
			n, err := a.readStateLocked(func() (int, error) { return a.s.part.ValueSize(a.t.inv.Target.Object(), key) })
			if err != nil || !a.openLocked() {
				return err
			}
			if n > 0 {
				old = limits.StateEntry(len(key), n)
			}
		}
		if z.bound+size-old > limit && size > old {
			var err error
			if old, err = a.measureStateLocked(key); err != nil || !a.openLocked() {
				return err
			}
		}
		if z.bound+size-old > limit && size > old {
			return errcode.New(errcode.RT0027,
				"the state of %s/%.100q would have %d bytes with 64 for each entry, at most %d (worker.invoker.object-state-size-limit)",
				a.t.inv.Target.Service, a.t.inv.Target.Key, z.bound+size-old, limit)
		}
		z.bound -= old
	}
	z.bound += size
	z.write(key, stateWrite{size, z.proposed + len(a.progress.steps) + 1})
	a.keepLocked()
	return nil
}

// beginChangesLocked takes the bound that earlier attempts have left. An attempt with the whole state
// needs none, and the one that it leads to is not kept: what was kept becomes wrong.
func (a *attempt) beginChangesLocked() {
	z := &a.state
	switch {
	case z.begun:
	case z.partial:
		z.bound, z.known = a.s.boundOf(a.t.inv.Target.Object())
	default:
		a.s.forgetBound(a.t.inv.Target.Object())
	}
	z.begun = true
}

// keepLocked stores the bound for other attempts.
func (a *attempt) keepLocked() {
	if a.state.partial && a.state.known {
		a.s.keepBound(a.t.inv.Target.Object(), a.state.bound)
	}
}

// measureStateLocked sets the bound to the size of the state after the steps so far, and returns the
// size of one key in it.
func (a *attempt) measureStateLocked(key []byte) (old int, err error) {
	z, o := &a.state, a.t.inv.Target.Object()
	writes := make(map[string]int, len(z.writes))
	for k, w := range z.writes {
		writes[k] = w.size
	}
	hidden := z.hidden()
	sum, err := a.readStateLocked(func() (sum int, err error) {
		for k, size := range writes {
			sum += size
			if k == string(key) {
				old = size
			}
		}
		if hidden {
			return sum, nil
		}
		err = a.s.part.StateSizes(o, func(k []byte, size int) {
			if _, written := writes[string(k)]; written {
				return
			}
			size = limits.StateEntry(len(k), size)
			if sum += size; string(k) == string(key) {
				old = size
			}
		})
		return sum, err
	})
	if err == nil {
		z.known, z.bound = true, sum
	}
	return old, err
}

// readStateLocked releases t.mu while it reads the tables, as notifications must not wait for that.
func (a *attempt) readStateLocked(read func() (int, error)) (int, error) {
	t := a.t
	a.activity.held = true
	t.mu.Unlock()
	a.s.iv.loads <- struct{}{}
	n, err := read()
	<-a.s.iv.loads
	t.mu.Lock()
	a.activity.held = false
	a.touchLocked()
	if err != nil {
		return 0, errcode.New(errcode.RT0006, "read the size of the state: %w", err)
	}
	return n, nil
}

// hidden reports whether the tables may contain state that was cleared.
func (z *stateSize) hidden() bool { return z.cleared > z.settled }

// old returns the size of a key, if the tables need not be read for it.
func (z *stateSize) old(key []byte) (size int, known bool) {
	if w, written := z.writes[string(key)]; written {
		return w.size, true
	}
	return 0, z.hidden()
}

// write records the size of a key.
func (z *stateSize) write(key []byte, w stateWrite) {
	if z.writes == nil {
		z.writes, z.prune = map[string]stateWrite{}, minPrune
	}
	if len(z.writes) >= z.prune {
		for k, w := range z.writes {
			if w.step <= z.settled {
				delete(z.writes, k)
			}
		}
		z.prune = max(minPrune, 2*len(z.writes))
	}
	z.writes[string(key)] = w
}

// boundOf returns the bound that an attempt has left.
func (s *Session) boundOf(o machine.Object) (bound int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound, known = s.sizes[o]
	return bound, known
}

// keepBound keeps a bound for further attempts.
func (s *Session) keepBound(o machine.Object, bound int) {
	if len(o.Key) > maxSizeKey {
		return
	}
	o = machine.Object{Scope: strings.Clone(o.Scope), Service: strings.Clone(o.Service), Key: strings.Clone(o.Key)} // not with their record
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil {
		s.sizes = map[machine.Object]int{}
	}
	if _, known := s.sizes[o]; !known && len(s.sizes) >= maxSizes {
		for some := range s.sizes {
			delete(s.sizes, some)
			break
		}
	}
	s.sizes[o] = bound
}

func (s *Session) forgetBound(o machine.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sizes, o)
}

// StateReplaced implements attempts.Session.
func (s *Session) StateReplaced(o machine.Object) { s.forgetBound(o) }
