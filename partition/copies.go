package partition

import (
	"errors"
	"fmt"
	"sync"

	"platform/internal/errcode"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// Some commands copy data within the tables: state reads into the journal, a restart from one
// journal into another (copies_restart.go), and the key of an object into the key of each of its
// rows and into each of its calls. The copied bytes are in no log entry, so a small entry could
// take any amount of memory to apply. The leader therefore looks up the sizes before it proposes:
// copied bytes count as part of the command, and progress that reads much is split.

const (
	// copiedBytes bounds the bytes that the steps of one command copy. A single step may
	// copy more.
	copiedBytes = 4 << 20
	// keysBytes bounds the keys of an object that a handler may list.
	keysBytes = limits.Message
	// What steps copy of the record of their invocation counts from longCopy bytes on, if there are
	// at least manyCopies of them.
	longCopy   = 1 << 10
	manyCopies = 16
)

// progressPart is a part of an attempt's progress that makes up one command.
type progressPart struct {
	*machine.Progress
	copies int
}

// splitProgress splits progress into commands that copy a bounded number of bytes each.
func (l *leadership) splitProgress(p *machine.Progress) ([]progressPart, error) {
	sizes, err := l.readSizes(p)
	if err != nil || sizes == nil {
		return []progressPart{{Progress: p}}, err
	}
	return splitBySize(p, sizes), nil
}

// splitBySize is splitProgress for the given number of bytes per step.
func splitBySize(p *machine.Progress, sizes []int) []progressPart {
	var out []progressPart
	first, sum := 0, 0
	add := func(end int) {
		part := *p
		part.Steps = p.Steps[first:end:end]
		if first > 0 {
			part.Errors, part.Failed = 0, machine.FailedAttempts{} // reported once
		}
		out = append(out, progressPart{&part, sum})
		first, sum = end, 0
	}
	for i, size := range sizes {
		if i > first && size > 0 && sum+size > copiedBytes {
			add(i)
		}
		sum += size
	}
	add(len(p.Steps))
	return out
}

// errMalformed means that the machine rejects the progress, so that its sizes do not matter.
var errMalformed = errors.New("malformed command")

// readSizes returns how many bytes each step of progress copies, nil if none does. State that
// earlier progress sets and that is not applied yet may be in any key.
func (l *leadership) readSizes(p *machine.Progress) ([]int, error) {
	reads, copies := countCopies(p.Steps)
	if reads == 0 && copies < manyCopies {
		return nil, nil
	}
	unapplied := l.unapplied.of(p.ID) // before the view, in which it may be
	view := l.p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(p.ID)
	if err != nil || inv == nil {
		return nil, err
	}
	c := copySizes{view: view, object: inv.Target.Object(), values: map[string]int{}, keys: -1, unapplied: unapplied}
	if copies >= manyCopies {
		c.row, c.call = copiedOf(inv)
	}
	if reads == 0 && c.call == 0 {
		return nil, nil
	}
	sizes := make([]int, len(p.Steps))
	for i := range p.Steps {
		if sizes[i], err = c.of(&p.Steps[i]); errors.Is(err, errMalformed) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

// countCopies returns how many steps read state, and how many copy the key of the object.
func countCopies(steps []machine.Step) (reads, copies int) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Kind != machine.StepCommand:
		case s.Type == journal.GetLazyState || s.Type == journal.GetLazyStateKeys:
			reads++
		case copiesKey(s.Type):
			copies++
		}
	}
	return reads, copies
}

// copySizes determines how many bytes the steps of one invocation copy, in their order.
type copySizes struct {
	view      *store.View
	object    machine.Object
	row, call int            // copied by each row of the object, and by each call
	values    map[string]int // sizes of the values of state that have been read or set
	keys      int            // size of all keys of state in the tables; -1: not read yet
	added     int            // size of the keys that the progress sets
	unapplied int            // size of the state that earlier progress sets
}

// of returns how many bytes a step copies. The error is errMalformed if the step cannot be decoded.
func (c *copySizes) of(s *machine.Step) (int, error) {
	switch {
	case s.Kind != machine.StepCommand:
		return 0, nil
	case s.Type == journal.Call || s.Type == journal.OneWayCall:
		return c.call, nil
	case s.Type == journal.GetLazyStateKeys:
		return c.ofKeys()
	case s.Type == journal.GetLazyState || s.Type == journal.SetState:
		return c.ofState(s)
	case s.Type == journal.ClearAllState:
		c.keys, c.added, c.unapplied = 0, 0, 0
	case copiesKey(s.Type):
		return c.row, nil
	}
	return 0, nil
}

func (c *copySizes) ofKeys() (size int, err error) {
	if c.keys < 0 {
		c.keys, err = keysSize(c.view, c.object, keysBytes)
	}
	return c.keys + c.added + c.unapplied, err
}

func (c *copySizes) ofState(s *machine.Step) (int, error) {
	command, err := journal.ParseState(s.Type, s.Payload)
	if err != nil {
		return 0, errMalformed
	}
	if s.Type == journal.SetState {
		c.values[string(command.Key)] = len(command.Value)
		c.added += len(command.Key)
		return c.row, nil
	}
	size, known := c.values[string(command.Key)]
	if !known {
		if size, err = c.view.ValueSize(c.object, command.Key); err != nil {
			return 0, fmt.Errorf("read the size of state: %w", err)
		}
		size = max(size, c.unapplied)
		c.values[string(command.Key)] = size
	}
	return size, nil
}

// countUnapplied counts the state that progress sets, until its outcome is passed to done.
func (l *leadership) countUnapplied(p *machine.Progress, done func(machine.Outcome, error)) func(machine.Outcome, error) {
	size := 0
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == machine.StepCommand && s.Type == journal.SetState {
			size += len(s.Payload)
		}
	}
	if size == 0 {
		return done
	}
	l.unapplied.add(p.ID, size)
	return func(o machine.Outcome, err error) {
		l.unapplied.add(p.ID, -size)
		done(o, err)
	}
}

// copiedOf returns how many bytes of an invocation each row of its object and each of its calls
// copies, 0 if these are few.
func copiedOf(inv *machine.Invocation) (row, call int) {
	row = len(inv.Target.Scope) + len(inv.Target.Key)
	call = row + len(inv.Trace.Parent) + len(inv.Trace.State) + len(inv.Trace.Baggage)
	if row < longCopy {
		row = 0
	}
	if call < longCopy {
		call = 0
	}
	return row, call
}

// copiesKey reports whether a command copies the key of the object: into the key of a row, or
// into a call as the name of its caller.
func copiesKey(t journal.Type) bool {
	switch t {
	case journal.SetState, journal.ClearState, journal.GetPromise, journal.PeekPromise, journal.CompletePromise, journal.Call, journal.OneWayCall:
		return true
	}
	return false
}

// keysSize returns the bytes of the keys of an object, or an error if they have more than most.
func keysSize(view *store.View, o machine.Object, most int) (int, error) {
	sum, err := view.KeysSize(o, most)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the size of state keys: %w", err)
	case sum > most:
		return 0, errcode.New(errcode.RT0003, "cannot list the keys of the state of %v: they have more than %d bytes: %w", o, most, raftgroup.ErrTooLarge)
	}
	return sum, nil
}

// combinedOutcome combines the outcomes of the parts of progress.
type combinedOutcome struct {
	done func(machine.Outcome, error)

	mu      sync.Mutex // covers the fields below
	left    int
	outcome machine.Outcome
	err     error
}

// add records the outcome of a part. After the last one it passes on the first that is not
// OK.
func (c *combinedOutcome) add(o machine.Outcome, err error) {
	c.mu.Lock()
	if c.err == nil && c.outcome.Code == machine.OK {
		c.outcome, c.err = o, err
	}
	c.left--
	last := c.left == 0
	c.mu.Unlock()
	if last {
		c.done(c.outcome, c.err)
	}
}
