package partition

import (
	"fmt"
	"sync"

	"platform/partition/journal"
	"platform/partition/machine"
)

// Some commands copy what is in the tables: reads of state into the journal, a restart
// from one journal into another. What they copy is in no log entry, so a small entry could
// take any amount of memory to apply. The leader therefore looks at the sizes before it
// proposes: what is copied counts as if it were part of the command, and progress that
// reads much is proposed in portions.

const (
	// copiedBytes is how many bytes the steps of one command may copy. One step may copy
	// more.
	copiedBytes = 4 << 20
	// keysBytes is what listing the keys of an object counts.
	keysBytes = 1 << 20
	// restartBytes is the size from which the journal of a restart is not looked at any
	// further.
	restartBytes = 16 << 20
)

// portion is a part of an attempt's progress that makes up a command.
type portion struct {
	*machine.Progress
	copies int
}

// portions cuts progress into commands that copy a bounded number of bytes each.
func (l *leadership) portions(p *machine.Progress) ([]portion, error) {
	sizes, err := l.readSizes(p)
	if err != nil || sizes == nil {
		return []portion{{Progress: p}}, err
	}
	return portionsOf(p, sizes), nil
}

// portionsOf is portions with what each step copies.
func portionsOf(p *machine.Progress, sizes []int) []portion {
	var out []portion
	first, sum := 0, 0
	add := func(end int) {
		part := *p
		part.Steps = p.Steps[first:end:end]
		if first > 0 {
			part.Errors = 0 // counted once
		}
		out = append(out, portion{&part, sum})
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

// readSizes is how many bytes each step of progress copies, nil if none does. The values
// that the progress itself sets count, those of former progress that is not applied yet
// are not known.
func (l *leadership) readSizes(p *machine.Progress) ([]int, error) {
	var sizes []int
	for i := range p.Steps {
		if t := p.Steps[i].Type; p.Steps[i].Kind == machine.StepCommand && (t == journal.GetLazyState || t == journal.GetLazyStateKeys) {
			sizes = make([]int, len(p.Steps))
			break
		}
	}
	if sizes == nil {
		return nil, nil
	}
	view := l.p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(p.ID)
	if err != nil || inv == nil {
		return nil, err
	}
	o, known := inv.Target.Object(), map[string]int{}
	for i := range p.Steps {
		s := &p.Steps[i]
		switch {
		case s.Kind != machine.StepCommand:
		case s.Type == journal.GetLazyStateKeys:
			sizes[i] = keysBytes
		case s.Type == journal.GetLazyState || s.Type == journal.SetState:
			c, err := journal.ParseState(s.Type, s.Payload)
			if err != nil {
				return nil, nil // for the machine to refuse
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

// copies is about how many bytes an operator's command copies.
func (l *leadership) copies(c machine.Command) (sum int, err error) {
	restart, ok := c.(*machine.Restart)
	if !ok || restart.From == 0 {
		return 0, nil
	}
	view := l.p.tables.View()
	defer view.Close()
	inv, err := view.Invocation(restart.Target)
	if err != nil || inv == nil {
		return 0, err
	}
	for i := uint32(0); i < inv.Length && sum < restartBytes; i++ {
		n, err := view.EntrySize(inv.ID, i)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// portionsOutcome puts the outcomes of portions together.
type portionsOutcome struct {
	done func(machine.Outcome, error)

	mu      sync.Mutex // covers the fields below
	left    int
	outcome machine.Outcome
	err     error
}

// take notes the outcome of a portion. After the last one it passes on the first that
// was not good.
func (c *portionsOutcome) take(o machine.Outcome, err error) {
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
