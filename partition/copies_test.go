package partition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/ids"
	"platform/internal/limits"
	"platform/internal/raftgroup"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/partition/machine/machinetest"
)

// copying is an invocation of an object on three nodes, whose state has a value of 1 MiB under the key x.
type copying struct {
	*replicaSet
	id         ids.Invocation
	record     *machine.Invocation
	completion uint32 // the last one that a step uses
}

func newCopying(t *testing.T) *copying {
	c := &copying{replicaSet: newReplicaSet(t, nil), id: ids.NewInvocation(1, [16]byte{1})}
	c.lead(t, func(l *leadership) error {
		_, err := l.propose(t.Context(), &machine.Invoke{
			ID: c.id, Target: machine.Target{Service: "Unknown", Key: "k", Handler: "h", Type: target.ObjectExclusive}, Input: journal.NewInput(nil, nil),
		})
		return err
	})
	c.find(t)
	c.progress(t, machinetest.SetState("x", make([]byte, 1<<20)))
	return c
}

// lead calls do with the current leadership until it succeeds, since a busy machine may lose one.
func (c *copying) lead(t *testing.T, do func(l *leadership) error) {
	require.Eventually(t, func() bool {
		l := c.hosts[c.leader()].p.role.leadership()
		return l != nil && do(l) == nil
	}, 2*time.Minute, time.Millisecond)
}

// find reads the record of the invocation.
func (c *copying) find(t *testing.T) {
	c.lead(t, func(l *leadership) (err error) {
		c.record, err = l.p.Find(t.Context(), c.id)
		return err
	})
}

// reads returns steps that each read the value of x.
func (c *copying) reads(n int) (steps []machine.Step) {
	for range n {
		c.completion++
		steps = append(steps, machinetest.GetState(c.completion, "x"))
	}
	return steps
}

// submit proposes progress, and returns the outcome of its last part.
func (c *copying) submit(l *leadership, steps []machine.Step) (machine.Outcome, error) {
	type result struct {
		outcome machine.Outcome
		err     error
	}
	done := make(chan result, 1)
	p := &machine.Progress{ID: c.id, Attempt: c.record.Attempt, Pin: machine.Pin{Deployment: "d", Protocol: 5}, Steps: steps}
	attemptSource{l}.Propose(p, func(o machine.Outcome, err error) { done <- result{o, err} })
	r := <-done
	return r.outcome, r.err
}

// progress stores steps, and returns in how many entries.
func (c *copying) progress(t *testing.T, steps ...machine.Step) (entries uint64) {
	c.lead(t, func(l *leadership) error {
		before, _ := l.p.tables.Applied()
		o, err := c.submit(l, steps)
		if err == nil && o.Code != machine.OK {
			err = ErrNotLeader
		}
		after, _ := l.p.tables.Applied()
		entries = after - before
		return err
	})
	return entries
}

// What a handler and a restart copy within the tables is bounded per log entry. The cases share an
// invocation; each leaves x and a longer journal.
func TestCopiesAreBoundedPerEntry(t *testing.T) {
	c := newCopying(t)
	t.Run("reads of a value", c.testReads)
	t.Run("lists of keys", c.testLists)
	t.Run("lists of keys that are set", c.testListsOfNewKeys)
	t.Run("reads of state that is not applied", c.testReadsOfUnappliedState)
	t.Run("after a part that is too large", c.testPartsAfterAFailedOne)
	t.Run("sizes of a restart", c.testRestartSizes)
	t.Run("a restart that copies too much", c.testRestartTooLarge)
}

func (c *copying) testReads(t *testing.T) {
	const reads = 20
	require.GreaterOrEqual(t, c.progress(t, c.reads(reads)...), uint64(reads/4), "an entry copies at most 4 MiB")
}

func (c *copying) testLists(t *testing.T) {
	const lists = 5
	long := func(i int) string { return strings.Repeat(string(rune('a'+i)), 1<<20) }
	var remove []machine.Step
	for i := range 3 {
		c.progress(t, machinetest.SetState(long(i), nil))
		remove = append(remove, machinetest.ClearState(long(i)))
	}
	var listing []machine.Step
	for i := range uint32(lists) {
		listing = append(listing, machinetest.GetStateKeys(1000+i))
	}
	require.GreaterOrEqual(t, c.progress(t, listing...), uint64(lists))
	c.lead(t, func(l *leadership) error {
		view := l.p.tables.View()
		defer view.Close()
		_, err := keysSize(view, c.record.Target.Object(), 2<<20)
		require.ErrorIs(t, err, raftgroup.ErrTooLarge)
		sum, err := keysSize(view, c.record.Target.Object(), 4<<20)
		require.Greater(t, sum, 3<<20)
		return err
	})
	for _, step := range remove {
		c.progress(t, step)
	}
}

func (c *copying) testListsOfNewKeys(t *testing.T) {
	const lists, keys, size = 5, 200, 10_000
	var steps, remove []machine.Step
	for i := range keys {
		key := fmt.Sprintf("%0*d", size, i)
		steps, remove = append(steps, machinetest.SetState(key, nil)), append(remove, machinetest.ClearState(key))
	}
	for i := range uint32(lists) {
		steps = append(steps, machinetest.GetStateKeys(2000+i))
	}
	require.GreaterOrEqual(t, c.progress(t, steps...), uint64(lists*keys*size/copiedBytes))
	c.progress(t, remove...)
}

func (c *copying) testReadsOfUnappliedState(t *testing.T) {
	c.lead(t, func(l *leadership) error {
		propose := func(done func(machine.Outcome, error), steps ...machine.Step) *machine.Progress {
			p := &machine.Progress{ID: c.id, Attempt: c.record.Attempt, Pin: machine.Pin{Deployment: "d", Protocol: 5}, Steps: steps}
			if done != nil {
				attemptSource{l}.Propose(p, done)
			}
			return p
		}
		stored := make(chan error, 1)
		propose(func(_ machine.Outcome, err error) { stored <- err }, machinetest.SetState("y", make([]byte, 1<<20)))
		sizes, err := l.readSizes(propose(nil, machinetest.GetState(3000, "y"), machinetest.GetStateKeys(3001)))
		if err == nil {
			err = <-stored
		}
		if err != nil {
			return err
		}
		require.Len(t, sizes, 2)
		require.GreaterOrEqual(t, sizes[0], 1<<20)
		require.Equal(t, 0, l.unapplied.of(c.id))
		return nil
	})
}

// The parts after one that cannot be proposed are not proposed either.
func (c *copying) testPartsAfterAFailedOne(t *testing.T) {
	var before uint32
	c.lead(t, func(l *leadership) error {
		c.find(t)
		before = c.record.Length
		steps := append(c.reads(5), machinetest.SetState("y", make([]byte, limits.Command)))
		_, err := c.submit(l, append(steps, c.reads(4)...))
		if !errors.Is(err, raftgroup.ErrTooLarge) || l.ctx.Err() != nil { // the first part may not be stored
			return ErrNotLeader
		}
		return nil
	})
	c.find(t)
	require.Equal(t, before+2*4, c.record.Length, "four reads and their results")
}

func (c *copying) testRestartSizes(t *testing.T) {
	c.find(t)
	c.lead(t, func(l *leadership) error {
		view := l.p.tables.View()
		defer view.Close()
		length := c.record.Length
		for _, most := range []int{0, 3 << 20, 16 << 20} {
			sum, err := journalSize(view, c.id, length, most)
			require.NoError(t, err)
			require.Greater(t, sum, most)
			require.Less(t, sum, most+2<<20)
		}
		copies, refusal, err := l.copies(&machine.Restart{Target: c.id, From: length - 1})
		require.NoError(t, err)
		require.Equal(t, machine.OK, refusal)
		require.Greater(t, copies, 20<<20)
		// The last of these reads has its result behind it, which counts as well.
		later, ok, err := laterCompletions(view, c.record, length-2, 1<<20)
		require.NoError(t, err)
		require.False(t, ok, "the result has 1 MiB and a few bytes")
		require.Zero(t, later)
		later, ok, err = laterCompletions(view, c.record, length-2, 2<<20)
		require.NoError(t, err)
		require.True(t, ok)
		require.Greater(t, later, 1<<20)
		return nil
	})
}

// Such a restart does not reach the log, where every replica would apply it.
func (c *copying) testRestartTooLarge(t *testing.T) {
	c.progress(t, c.reads(restartBytes>>20)...)
	c.find(t)
	c.lead(t, func(l *leadership) error {
		o, err := l.propose(t.Context(), &machine.Restart{Target: c.id, New: ids.NewInvocation(1, [16]byte{2}), From: c.record.Length - 1})
		if err == nil {
			require.Equal(t, machine.TooLarge, o.Code)
		}
		return err
	})
}

// The parts are the whole progress, in order. Each has one step or a bounded number of
// bytes, and there are no more of them than necessary.
// Each row of an object contains its key, and each call the name of its caller: 20,000 of them in one
// log entry, with a key of 3 MiB, would be 60 GiB.
func TestCopiesOfALongKeyAreSplit(t *testing.T) {
	c := newReplicaSet(t, nil)
	long := ids.NewInvocation(1, [16]byte{1})
	short := ids.NewInvocation(1, [16]byte{2})
	parts := func(id ids.Invocation, key string, step func(i uint32) machine.Step) (n int) {
		p := &machine.Progress{ID: id}
		for i := range uint32(40) {
			p.Steps = append(p.Steps, step(i))
		}
		require.Eventually(t, func() bool {
			l := c.hosts[c.leader()].p.role.leadership()
			if l == nil {
				return false
			}
			_, err := l.propose(t.Context(), &machine.Invoke{
				ID: id, Target: machine.Target{Service: "Unknown", Key: key, Handler: "h", Type: target.WorkflowRun}, Input: journal.NewInput(nil, nil),
			})
			if err != nil {
				return false
			}
			split, err := l.splitProgress(p)
			n = len(split)
			return err == nil
		}, 2*time.Minute, time.Millisecond)
		return n
	}
	for name, step := range map[string]func(uint32) machine.Step{
		"state":    func(i uint32) machine.Step { return machinetest.SetState(string(rune('a'+i)), nil) },
		"promises": func(i uint32) machine.Step { return machine.Step{Type: journal.GetPromise} },
		"calls":    func(i uint32) machine.Step { return machine.Step{Type: journal.OneWayCall} },
	} {
		require.Equal(t, 10, parts(long, strings.Repeat("k", 1<<20), step), name)
		require.Equal(t, 1, parts(short, "k", step), name)
	}
}

func TestProgressPartsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 1000, copiedBytes / 3, copiedBytes, 2 * copiedBytes}), 1, 60).Draw(t, "sizes")
		p := &machine.Progress{Attempt: 7, Errors: 3, Failed: machine.FailedAttempts{Total: 4, SinceCommand: 2}, Steps: make([]machine.Step, len(sizes))}
		for i := range p.Steps {
			p.Steps[i].Completion = uint32(i)
		}
		next, errors, before := 0, uint32(0), 2*copiedBytes
		for i, part := range splitBySize(p, sizes) {
			require.Equal(t, i == 0, part.Failed == p.Failed, "it would undo what later commands reset")
			require.NotEmpty(t, part.Steps)
			require.Equal(t, p.Attempt, part.Attempt)
			sum, reads := 0, 0
			first := sizes[next]
			for _, s := range part.Steps {
				require.Equal(t, uint32(next), s.Completion)
				if sum += sizes[next]; sizes[next] > 0 {
					reads++
				}
				next++
			}
			require.Equal(t, sum, part.copies)
			require.True(t, sum <= copiedBytes || reads == 1, "%d bytes", sum)
			require.Greater(t, before+first, copiedBytes, "the next step did not fit")
			before = sum
			errors += part.Errors
		}
		require.Equal(t, len(sizes), next)
		require.Equal(t, p.Errors, errors)
	})
}

func TestTheFirstFailedOutcomeOfPartsCounts(t *testing.T) {
	var got []machine.Outcome
	c := &combinedOutcome{left: 3, done: func(o machine.Outcome, err error) {
		require.NoError(t, err)
		got = append(got, o)
	}}
	c.add(machine.Outcome{}, nil)
	c.add(machine.Outcome{Code: machine.Invalid}, nil)
	require.Empty(t, got)
	c.add(machine.Outcome{Code: machine.Stale}, nil)
	require.Equal(t, []machine.Outcome{{Code: machine.Invalid}}, got)
}
