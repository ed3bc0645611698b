package flowcontrol

import "iter"

// LaneReader reads ranges of lanes.
type LaneReader interface {
	// QueuedBetween yields the entries of a lane with sequence numbers from ≤ n < before,
	// in order.
	QueuedBetween(q QueueKey, priority uint8, from, before uint64) iter.Seq2[Queued, error]
}

// MaxCounted is the number of entries of a queue that are scanned to count the waiting
// ones.
const MaxCounted = 10_000

// Ahead returns how many invocations of a queue run before the one at a position of a lane,
// which has waited since a time in milliseconds. It is exact as long as no invocation has
// left the queue without running, and within MaxCounted entries; beyond that, gaps may be
// counted.
func Ahead(line LaneReader, key QueueKey, q *VQueue, priority uint8, seq uint64, since int64) (n uint64, err error) {
	a := aheadCounter{line: line, key: key, budget: MaxCounted, gaps: q.gaps()}
	rank := since - int64(priority)*PriorityHeadStart
	for i := range q.Lanes {
		lane, other := q.Lanes[i], uint8(i)
		upto := seq
		if other != priority {
			// Arrival times up to which entries of this lane come first. On a tie the
			// higher priority does.
			latest := rank + int64(other)*PriorityHeadStart
			if other < priority {
				latest--
			}
			if upto, err = a.arrived(lane, other, latest); err != nil {
				return 0, err
			}
		}
		there, err := a.count(lane.Head, min(max(upto, lane.Head), lane.Tail), other)
		if err != nil {
			return 0, err
		}
		n += there
	}
	return n, nil
}

// gaps returns the number of gaps in the lanes.
func (q *VQueue) gaps() uint64 {
	places := uint64(0)
	for _, lane := range q.Lanes {
		places += lane.Tail - lane.Head
	}
	return places - min(q.Waiting, places)
}

// aheadCounter counts entries of lanes.
type aheadCounter struct {
	line   LaneReader
	key    QueueKey
	budget uint64 // entries that may still be scanned
	gaps   uint64
}

// arrived returns the first sequence number of a lane after all entries that arrived up to
// a time. A lane is sorted by arrival, so it uses binary search.
func (a *aheadCounter) arrived(lane Lane, priority uint8, latest int64) (uint64, error) {
	low, high := lane.Head, lane.Tail
	for low < high {
		middle := low + (high-low)/2
		early := false
		for entry, err := range a.line.QueuedBetween(a.key, priority, middle, high) {
			if err != nil {
				return 0, err
			}
			early = entry.At <= latest
			break
		}
		if early {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// count returns the number of entries in a range of a lane.
func (a *aheadCounter) count(from, before uint64, priority uint8) (n uint64, err error) {
	if a.gaps == 0 || before-from > a.budget {
		return before - from, nil
	}
	a.budget -= before - from
	for _, err := range a.line.QueuedBetween(a.key, priority, from, before) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
