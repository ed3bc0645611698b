package flowcontrol_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/internal/ids"
)

// line is a vqueue's lanes: the entries by sequence number.
type line map[uint8]map[uint64]flowcontrol.Queued

func (l line) FirstQueued(_ flowcontrol.QueueKey, priority uint8, from, before uint64) (uint64, flowcontrol.Queued, error) {
	for seq := from; seq < before; seq++ {
		if entry, there := l[priority][seq]; there {
			return seq, entry, nil
		}
	}
	return 0, flowcontrol.Queued{}, nil
}

func (l line) QueuedBetween(_ flowcontrol.QueueKey, priority uint8, from, before uint64) iter.Seq2[flowcontrol.Queued, error] {
	return func(yield func(flowcontrol.Queued, error) bool) {
		for seq := from; seq < before; seq++ {
			if entry, there := l[priority][seq]; there && !yield(entry, nil) {
				return
			}
		}
	}
}

// drawLine generates lanes of a few priorities, with gaps.
func drawLine(t *rapid.T) (line, *flowcontrol.VQueue) {
	l, q := line{}, &flowcontrol.VQueue{}
	for _, priority := range []uint8{0, 1, 9} {
		lane := &q.Lanes[priority]
		lane.Head = rapid.Uint64Range(0, 3).Draw(t, "head")
		lane.Tail = lane.Head + rapid.Uint64Range(0, 8).Draw(t, "length")
		l[priority] = map[uint64]flowcontrol.Queued{}
		at := int64(1_000_000)
		for seq := lane.Head; seq < lane.Tail; seq++ {
			at += rapid.SampledFrom([]int64{0, 1, flowcontrol.PriorityHeadStart / 2, flowcontrol.PriorityHeadStart}).Draw(t, "pause")
			if rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
				continue
			}
			q.Waiting++
			l[priority][seq] = flowcontrol.Queued{ID: ids.NewInvocation(q.Waiting, [16]byte{1}), At: at}
		}
	}
	return l, q
}

// The order is found by serving the queue until it is empty.
func TestAheadIsHowManyGetTheirTurnFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, q := drawLine(t)
		type turn struct {
			priority uint8
			seq      uint64
			entry    flowcontrol.Queued
			told     uint64
		}
		var told []turn
		for priority, places := range l {
			for seq, entry := range places {
				n, err := flowcontrol.Ahead(l, flowcontrol.QueueKey{}, q, priority, seq, entry.At)
				require.NoError(t, err)
				told = append(told, turn{priority, seq, entry, n})
			}
		}
		for n := range len(told) {
			priority, seq, entry, err := flowcontrol.First(l, flowcontrol.QueueKey{}, q)
			require.NoError(t, err)
			require.Contains(t, told, turn{priority, seq, entry, uint64(n)})
			delete(l[priority], seq)
			q.Lanes[priority].Head = seq + 1
		}
	})
}

// lazy is a long lane that counts reads.
type lazy struct {
	gap  uint64
	read int
}

func (l *lazy) QueuedBetween(_ flowcontrol.QueueKey, _ uint8, from, before uint64) iter.Seq2[flowcontrol.Queued, error] {
	return func(yield func(flowcontrol.Queued, error) bool) {
		for seq := from; seq < before; seq++ {
			if l.read++; seq != l.gap && !yield(flowcontrol.Queued{At: int64(seq)}, nil) {
				return
			}
		}
	}
}

func TestAheadInALongLineIsCheap(t *testing.T) {
	const many = 1_000_000
	q := &flowcontrol.VQueue{Waiting: 2 * many}
	q.Lanes[0], q.Lanes[3] = flowcontrol.Lane{Tail: many}, flowcontrol.Lane{Tail: many}
	l := &lazy{gap: many}
	n, err := flowcontrol.Ahead(l, flowcontrol.QueueKey{}, q, 0, 700_000, 700_000)
	require.NoError(t, err)
	require.EqualValues(t, 700_000+880_001, n, "those of priority 3 arrived up to 180 s later")
	require.Less(t, l.read, 50)

	q.Waiting, l.gap = 2*many-1, 5
	n, err = flowcontrol.Ahead(l, flowcontrol.QueueKey{}, q, 0, 700_000, 700_000)
	require.NoError(t, err)
	require.EqualValues(t, 700_000+880_001, n, "too many to scan for gaps")
	l.read = 0
	n, err = flowcontrol.Ahead(l, flowcontrol.QueueKey{}, &flowcontrol.VQueue{Waiting: many - 1, Lanes: [10]flowcontrol.Lane{{Tail: many}}}, 0, 1000, 1000)
	require.NoError(t, err)
	require.EqualValues(t, 999, n, "gaps are not counted")
	require.LessOrEqual(t, l.read, flowcontrol.MaxCounted+50)
}
