package partition

import (
	"fmt"
	"sync"

	"platform/internal/errcode"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/store"
)

// Some commands copy data within the tables: state reads into the journal, a restart from
// one journal into another, and the key of an object into the key of each of its rows and into each
// of its calls. The copied bytes are in no log entry, so a small entry could take any amount of
// memory to apply. The leader therefore looks up the sizes before it
// proposes: copied bytes count as part of the command, and progress that reads much is
// split.

const (
	// copiedBytes bounds the bytes that the steps of one command copy. A single step may
	// copy more.
	copiedBytes = 4 << 20
	// keysBytes bounds the keys of an object that a handler may list.
	keysBytes = limits.Message
	// restartBytes and restartEntries bound what a restart copies, since it is one command.
	restartBytes   = 64 << 20
	restartEntries = 100_000
	// What steps copy of the record of their invocation counts from longCopy bytes on, if there are
	// at least manyCopies of them.
	longCopy   = 1 << 10
	manyCopies = 16
	// restartScan bounds the bytes between these entries and their last completion.
	restartScan = 256 << 20
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
			part.Errors = 0 // counted once
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

// readSizes returns how many bytes each step of progress copies, nil if none does. Values
// that the progress itself sets are counted; those of earlier progress that is not applied
// yet are unknown.
func (l *leadership) readSizes(p *machine.Progress) ([]int, error) {
	reads, copies := 0, 0
	for i := range p.Steps {
		switch s := &p.Steps[i]; {
		case s.Kind != machine.StepCommand:
		case s.Type == journal.GetLazyState || s.Type == journal.GetLazyStateKeys:
			reads++
		case copiesKey(s.Type):
			copies++
		}
	}
	if reads == 0 && copies < manyCopies {
		return nil, nil
	}
	view := l.p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(p.ID)
	if err != nil || inv == nil {
		return nil, err
	}
	row, call := 0, 0
	if copies >= manyCopies {
		row, call = copiedOf(inv)
	}
	if reads == 0 && call == 0 {
		return nil, nil
	}
	sizes := make([]int, len(p.Steps))
	o, known, keys := inv.Target.Object(), map[string]int{}, -1
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case s.Kind != machine.StepCommand:
		case s.Type == journal.Call || s.Type == journal.OneWayCall:
			sizes[i] = call
		case copiesKey(s.Type):
			sizes[i] = row
		}
		switch {
		case s.Kind != machine.StepCommand:
		case s.Type == journal.GetLazyStateKeys:
			if keys < 0 {
				if keys, err = keysSize(view, o, keysBytes); err != nil {
					return nil, err
				}
			}
			sizes[i] = keys
		case s.Type == journal.ClearAllState:
			keys = 0
		case s.Type == journal.GetLazyState || s.Type == journal.SetState:
			c, err := journal.ParseState(s.Type, s.Payload)
			if err != nil {
				return nil, nil // the machine rejects it
			}
			if s.Type == journal.SetState {
				known[string(c.Key)] = len(c.Value)
				continue
			}
			size, ok := known[string(c.Key)]
			if !ok {
				if size, err = view.ValueSize(o, c.Key); err != nil {
					return nil, fmt.Errorf("read the size of state: %w", err)
				}
				known[string(c.Key)] = size
			}
			sizes[i] = size
		}
	}
	return sizes, nil
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

// copies returns approximately how many bytes an operator's command copies, or the code with
// which it is refused because they are too many.
func (l *leadership) copies(c machine.Command) (sum int, refusal machine.Code, err error) {
	restart, ok := c.(*machine.Restart)
	if !ok || restart.From == 0 {
		return 0, machine.OK, nil
	}
	view := l.p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(restart.Target)
	if err != nil || inv == nil || restart.From >= inv.Length {
		return 0, machine.OK, err // the machine refuses it
	}
	if restart.From >= restartEntries {
		return 0, machine.TooLarge, nil
	}
	if sum, err = journalSize(view, inv.ID, restart.From+1, restartBytes); sum > restartBytes {
		return 0, machine.TooLarge, nil
	}
	if err != nil {
		return 0, machine.OK, err
	}
	later, ok, err := laterCompletions(view, inv, restart.From, restartBytes-sum)
	if err == nil && !ok {
		return 0, machine.TooLarge, nil
	}
	return sum + later, machine.OK, err
}

// laterCompletions returns the bytes of the completions, behind an entry of a journal, of the
// commands up to it. ok is false if they have more than most, or if too much lies in between.
func laterCompletions(view *store.View, inv *machine.Invocation, last uint32, most int) (sum int, ok bool, err error) {
	wanted, err := openCompletions(view, inv.ID, last)
	if err != nil {
		return 0, false, err
	}
	for id := range wanted { // otherwise the machine refuses the restart without reading more
		if how, err := view.Notified(inv.ID, journal.Completion(id)); err != nil || how == journal.Pending {
			return 0, true, err
		}
	}
	read := 0
	for i := last + 1; i < inv.Length && len(wanted) > 0; i++ {
		e, err := view.Entry(inv.ID, i)
		if err != nil {
			return 0, false, err
		}
		if read += len(e.Payload); i-last > restartEntries || read > restartScan {
			return 0, false, nil
		}
		if id, ok := completionID(e); ok && wanted[id] {
			delete(wanted, id)
			if sum += len(e.Payload); sum > most {
				return 0, false, nil
			}
		}
	}
	return sum, true, nil
}

// openCompletions returns the completions of the commands in the first entries of a journal that
// are not among these entries.
func openCompletions(view *store.View, id ids.Invocation, last uint32) (map[uint32]bool, error) {
	open := map[uint32]bool{}
	for i := range last + 1 {
		e, err := view.Entry(id, i)
		if err != nil {
			return nil, err
		}
		if done, ok := completionID(e); ok {
			delete(open, done)
		} else if e.Type.IsCommand() {
			for _, requested := range journal.CompletionsOf(e) {
				open[requested] = true
			}
		}
	}
	return open, nil
}

// completionID returns the completion ID of an entry that is a completion.
func completionID(e journal.Entry) (uint32, bool) {
	if e.Type.IsCommand() {
		return 0, false
	}
	n, err := journal.ParseNotification(e.Payload)
	return n.ID.Index, err == nil && !n.ID.Signal
}

// journalSize returns the bytes of the first entries of a journal, or a number above most if
// they have more than that.
func journalSize(view *store.View, id ids.Invocation, entries uint32, most int) (sum int, err error) {
	for i := range entries {
		n, err := view.EntrySize(id, i)
		if err != nil {
			return 0, err
		}
		if sum += n; sum > most {
			break
		}
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
