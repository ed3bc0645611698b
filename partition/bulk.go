package partition

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"platform/internal/failpoint"
	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/partition/codec"
	"platform/partition/machine"
)

// priority is how a command competes with others for the entries of the log.
type priority uint8

const (
	prompt priority = iota
	// yielding: prompt commands precede it in entries.
	yielding
	// bulk: it waits for an entry of its own.
	bulk
)

// Sizes from which new invocations and progress, as encoded, have a lower priority.
const (
	yieldingCommand = 16 << 10
	bulkCommand     = 256 << 10
)

const (
	// LargeCommand is the size from which a command occupies its partition for so long, 20 ms and
	// more, that small invocations avoid the partition if they may be in any.
	LargeCommand = 4 << 20
	// occupiedAfter is for how long they avoid it after the last large command: the result of an
	// invocation with a large input is often large, too.
	occupiedAfter = 2 * time.Second
)

// largeCommands records when a partition had commands of LargeCommand or more.
type largeCommands struct {
	begun   time.Time // the times are relative to it
	pending atomic.Int32
	ended   atomic.Int64 // when the last one had its outcome, in nanoseconds; 0: there was none
}

func newLargeCommands() *largeCommands { return &largeCommands{begun: time.Now()} }

func (c *largeCommands) begin() { c.pending.Add(1) }

func (c *largeCommands) end() {
	c.ended.Store(int64(time.Since(c.begun)))
	c.pending.Add(-1)
}

// occupying reports whether there is one without an outcome, or was one in the last occupiedAfter.
func (c *largeCommands) occupying() bool {
	if c.pending.Load() > 0 {
		return true
	}
	ended := time.Duration(c.ended.Load())
	return ended > 0 && time.Since(c.begun)-ended < occupiedAfter
}

// pendingCounts is a number for each invocation that describes its progress without an outcome. The zero value is all 0.
type pendingCounts struct {
	total atomic.Int64 // spares others the lock

	mu   sync.Mutex // covers byID
	byID map[ids.Invocation]int
}

func (p *pendingCounts) of(id ids.Invocation) int {
	if p.total.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byID[id]
}

// add changes the number of an invocation by n.
func (p *pendingCounts) add(id ids.Invocation, n int) {
	p.total.Add(int64(n))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[ids.Invocation]int{}
	}
	if p.byID[id] += n; p.byID[id] == 0 {
		delete(p.byID, id)
	}
}

// priorityOf returns the priority of a command of about that size. Progress must not overtake the earlier progress of its
// invocation, so it has at most the same priority.
func (l *leadership) priorityOf(c machine.Command, size int) priority {
	var earlier priority
	switch c := c.(type) {
	default:
		return prompt
	case *machine.Invoke:
	case *machine.Progress:
		switch {
		case failpoint.Active(failpoint.OvertakenProgress):
		case l.bulkProgress.of(c.ID) > 0:
			earlier = bulk
		case l.yieldProgress.of(c.ID) > 0:
			earlier = yielding
		}
	}
	switch {
	case size >= failpoint.Or(failpoint.BulkBytes, bulkCommand):
		return bulk
	case size >= failpoint.Or(failpoint.YieldingBytes, yieldingCommand):
		return max(earlier, yielding)
	}
	return earlier
}

// submitYielding proposes a yielding command.
func (l *leadership) submitYielding(c machine.Command, size, copies int, done func(machine.Outcome, error)) error {
	if !l.proposer.HasRoom(size+copies, true) {
		return raftgroup.ErrOverloaded // without encoding it for each try
	}
	data, err := l.encode(c)
	if err != nil {
		return err
	}
	p, ok := c.(*machine.Progress)
	if !ok {
		return l.proposer.SubmitYielding(data, copies, raftgroup.CompletionFunc[machine.Outcome](done))
	}
	id := p.ID
	l.yieldProgress.add(id, 1)
	err = l.proposer.SubmitYielding(data, copies, raftgroup.CompletionFunc[machine.Outcome](func(o machine.Outcome, err error) {
		l.yieldProgress.add(id, -1)
		done(o, err)
	}))
	if err != nil {
		l.yieldProgress.add(id, -1)
	}
	return err
}

// submitBulk proposes a bulk command, unless ctx ends before its turn. It is encoded then, so
// that waiting takes no memory in addition to that of the command.
func (l *leadership) submitBulk(ctx context.Context, c machine.Command, size int, done func(machine.Outcome, error)) error {
	if err := l.encodable(c, size); err != nil {
		return err
	}
	proposal := raftgroup.Bulk{Size: size}
	switch command := c.(type) {
	case *machine.Invoke:
		own := *command // the caller may change it after ctx has ended
		c = &own
	case *machine.Progress:
		proposal.Ordered = true
		l.bulkProgress.add(command.ID, 1)
		report := done
		done = func(o machine.Outcome, err error) {
			l.bulkProgress.add(command.ID, -1)
			report(o, err)
		}
	}
	if size >= LargeCommand {
		l.large.begin()
		report := done
		done = func(o machine.Outcome, err error) {
			l.large.end()
			report(o, err)
		}
	}
	w := &waitingCommand{c: c}
	stop := context.AfterFunc(ctx, func() { w.take() })
	proposal.Encode = func() ([]byte, error) {
		stop()
		if c := w.take(); c != nil {
			return l.encode(c)
		}
		return nil, fmt.Errorf("not proposed: %w", context.Cause(ctx))
	}
	err := l.proposer.SubmitBulk(proposal, raftgroup.CompletionFunc[machine.Outcome](done))
	if err != nil {
		stop()
		if p, ok := c.(*machine.Progress); ok {
			l.bulkProgress.add(p.ID, -1)
		}
		if size >= LargeCommand {
			l.large.end()
		}
	}
	return err
}

// encodable returns the error with which encode would fail. It is known before the next
// progress of the same attempt is submitted, so that the journal has no gaps.
func (l *leadership) encodable(c machine.Command, size int) error {
	if size > limits.Command { // an estimate that is too high
		_, err := l.encode(c)
		return err
	}
	p, ok := c.(*machine.Progress)
	if !ok {
		return nil
	}
	brief := *p
	brief.Steps = slices.Clone(p.Steps)
	for i := range brief.Steps {
		brief.Steps[i].Payload = nil
	}
	_, err := l.encode(&brief)
	return err
}

// waitingCommand is a command that waits to be encoded, until it is taken.
type waitingCommand struct {
	mu sync.Mutex // covers c
	c  machine.Command
}

func (w *waitingCommand) take() (c machine.Command) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, w.c = w.c, nil
	return c
}

// encode encodes a command for the log.
func (l *leadership) encode(c machine.Command) ([]byte, error) {
	level := l.level()
	data, err := codec.EncodeCommand(level, codec.ForLevel(level, c))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", c, err)
	}
	return data, checkCommandSize(level, c, len(data))
}
