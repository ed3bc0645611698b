package partition

import (
	"errors"
	"slices"
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

// A handler that reads a large value repeatedly, and a restart that copies these reads,
// cause several log entries.
func TestReadsOfOneProgressAreSplit(t *testing.T) {
	c := newTrio(t, nil)
	id := ids.NewInvocation(1, [16]byte{1})
	// propose retries with each new leadership, since a busy machine may lose it
	propose := func(do func(l *leadership) error) {
		require.Eventually(t, func() bool {
			l := c.hosts[c.leader()].p.lead.Load()
			return l != nil && do(l) == nil
		}, 60*time.Second, time.Millisecond)
	}
	record := new(machine.Invocation)
	propose(func(l *leadership) (err error) {
		_, err = l.propose(t.Context(), &machine.Invoke{
			ID: id, Target: machine.Target{Service: "Unknown", Key: "k", Handler: "h", Type: target.ObjectExclusive}, Input: journal.NewInput(nil, nil),
		})
		if err == nil {
			record, err = l.p.Find(t.Context(), id)
		}
		return err
	})
	progress := func(steps ...machine.Step) (entries uint64) {
		propose(func(l *leadership) error {
			before, _ := l.p.tables.Applied()
			answer := make(chan error, 1)
			p := &machine.Progress{ID: id, Attempt: record.Attempt, Pin: machine.Pin{Deployment: "d", Protocol: 5}, Steps: steps}
			attemptSource{l}.Propose(p, func(o machine.Outcome, err error) {
				if err == nil && o.Code != machine.OK {
					err = ErrNotLeader
				}
				answer <- err
			})
			err := <-answer
			after, _ := l.p.tables.Applied()
			entries = after - before
			return err
		})
		return entries
	}
	const reads = 20
	progress(machinetest.SetState("x", make([]byte, 1<<20)))
	var steps []machine.Step
	for i := range uint32(reads) {
		steps = append(steps, machinetest.GetState(i+1, "x"))
	}
	require.GreaterOrEqual(t, progress(steps...), uint64(reads/4), "an entry copies at most 4 MiB")

	// Lists of keys are copied as well.
	const lists = 5
	long := func(i int) string { return strings.Repeat(string(rune('a'+i)), 1<<20) }
	var keys []machine.Step
	for i := range 3 {
		progress(machinetest.SetState(long(i), nil))
		keys = append(keys, machinetest.ClearState(long(i)))
	}
	var listing []machine.Step
	for i := range uint32(lists) {
		listing = append(listing, machinetest.GetStateKeys(1000+i))
	}
	require.GreaterOrEqual(t, progress(listing...), uint64(lists))
	propose(func(l *leadership) error {
		view := l.p.tables.View()
		defer view.Close()
		_, err := keysSize(view, record.Target.Object(), 2<<20)
		require.ErrorIs(t, err, raftgroup.ErrTooLarge)
		sum, err := keysSize(view, record.Target.Object(), 4<<20)
		require.Greater(t, sum, 3<<20)
		return err
	})
	for _, step := range keys {
		progress(step)
	}

	// The parts after one that cannot be proposed are not proposed either.
	length := func() (n uint32) {
		propose(func(l *leadership) error {
			record, err := l.p.Find(t.Context(), id)
			if err == nil {
				n = record.Length
			}
			return err
		})
		return n
	}
	gap := append(slices.Clone(steps[:5]), machinetest.SetState("y", make([]byte, limits.Command)))
	gap = append(gap, steps[5:9]...)
	completion := uint32(reads)
	before := uint32(0)
	propose(func(l *leadership) error {
		before = length()
		for i := range gap { // an earlier attempt may have been stored
			if gap[i].Type == journal.GetLazyState {
				completion++
				gap[i] = machinetest.GetState(completion, "x")
			}
		}
		answer := make(chan error, 1)
		p := &machine.Progress{ID: id, Attempt: record.Attempt, Pin: machine.Pin{Deployment: "d", Protocol: 5}, Steps: gap}
		attemptSource{l}.Propose(p, func(_ machine.Outcome, err error) { answer <- err })
		err := <-answer
		if !errors.Is(err, raftgroup.ErrTooLarge) || l.ctx.Err() != nil { // the first part may not be stored
			return ErrNotLeader
		}
		return nil
	})
	require.Equal(t, before+2*4, length(), "four reads and their results")
	propose(func(l *leadership) (err error) {
		if record, err = l.p.Find(t.Context(), id); err != nil {
			return err
		}
		view := l.p.tables.View()
		defer view.Close()
		for _, most := range []int{0, 3 << 20, 16 << 20} {
			sum, err := journalSize(view, id, record.Length, most)
			require.NoError(t, err)
			require.Greater(t, sum, most)
			require.Less(t, sum, most+2<<20)
		}
		copies, refusal, err := l.copies(&machine.Restart{Target: id, From: record.Length - 1})
		require.NoError(t, err)
		require.Equal(t, machine.OK, refusal)
		require.Greater(t, copies, reads<<20)
		// The last of these reads has its result behind it, which counts as well.
		later, ok, err := laterCompletions(view, record, record.Length-2, 1<<20)
		require.NoError(t, err)
		require.False(t, ok, "the result has 1 MiB and a few bytes")
		require.Zero(t, later)
		later, ok, err = laterCompletions(view, record, record.Length-2, 2<<20)
		require.NoError(t, err)
		require.True(t, ok)
		require.Greater(t, later, 1<<20)
		return nil
	})

	// A restart that copies too much does not reach the log, where every replica would apply it.
	steps = steps[:0]
	for range restartBytes >> 20 {
		completion++
		steps = append(steps, machinetest.GetState(completion, "x"))
	}
	progress(steps...)
	propose(func(l *leadership) (err error) {
		if record, err = l.p.Find(t.Context(), id); err != nil {
			return err
		}
		o, err := l.propose(t.Context(), &machine.Restart{Target: id, New: ids.NewInvocation(1, [16]byte{2}), From: record.Length - 1})
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
	c := newTrio(t, nil)
	long := ids.NewInvocation(1, [16]byte{1})
	short := ids.NewInvocation(1, [16]byte{2})
	parts := func(id ids.Invocation, key string, step func(i uint32) machine.Step) (n int) {
		p := &machine.Progress{ID: id}
		for i := range uint32(40) {
			p.Steps = append(p.Steps, step(i))
		}
		require.Eventually(t, func() bool {
			l := c.hosts[c.leader()].p.lead.Load()
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
		}, 60*time.Second, time.Millisecond)
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
		p := &machine.Progress{Attempt: 7, Errors: 3, Steps: make([]machine.Step, len(sizes))}
		for i := range p.Steps {
			p.Steps[i].Completion = uint32(i)
		}
		next, errors, before := 0, uint32(0), 2*copiedBytes
		for _, part := range splitBySize(p, sizes) {
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
