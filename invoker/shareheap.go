package invoker

import (
	"container/heap"
	"time"
)

// notInHeap is the heap index of a share that waits for no slot.
const notInHeap = -1

// updateHeapLocked adds a service to the heap of waiting ones, updates or removes it. It returns
// true if it was added.
func (q *slots) updateHeapLocked(s *share, now time.Time) bool {
	eligible := s.resumed.len > 0 || s.fresh.len > 0 && !q.heldBackLocked(s, now)
	switch {
	case eligible && s.heapIndex == notInHeap:
		heap.Push(&q.waitingShares, s)
		return true
	case eligible:
		heap.Fix(&q.waitingShares, s.heapIndex)
	case s.heapIndex != notInHeap:
		heap.Remove(&q.waitingShares, s.heapIndex)
	}
	return false
}

// shareHeap is a heap of the waiting services. The first one holds the fewest slots and,
// among equals or if services take turns, has waited longest since its last one.
type shareHeap []*share

func (h shareHeap) Len() int { return len(h) }

func (h shareHeap) Less(i, j int) bool {
	if h[i].used != h[j].used && !h[i].inTurns {
		return h[i].used < h[j].used
	}
	return h[i].granted < h[j].granted
}

func (h shareHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapIndex, h[j].heapIndex = i, j
}

func (h *shareHeap) Push(x any) {
	s := x.(*share)
	s.heapIndex = len(*h)
	*h = append(*h, s)
}

func (h *shareHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	s.heapIndex = notInHeap
	return s
}
