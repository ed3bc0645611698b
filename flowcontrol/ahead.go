package flowcontrol

import "iter"

// LineReader is where lanes can be walked along.
type LineReader interface {
	// QueuedBetween yields who waits at the places from ≤ n < before of a lane, in their
	// order.
	QueuedBetween(q QueueKey, priority uint8, from, before uint64) iter.Seq2[Queued, error]
}

// MaxCounted is up to how many places of a line are looked at one by one to tell how
// many wait there.
const MaxCounted = 10_000

// Ahead is how many of a queue get their turn before the one that waits at a place of
// a lane, since a time in milliseconds. It is exact as long as nobody has left the line
// without its turn, and in any case within MaxCounted places; beyond, those that have
// left may be counted.
func Ahead(line LineReader, key QueueKey, q *VQueue, priority uint8, place uint64, since int64) (n uint64, err error) {
	a := ahead{line: line, key: key, budget: MaxCounted, gaps: q.gaps()}
	mine := since - int64(priority)*PriorityHeadStart
	for i := range q.Lanes {
		lane, other := q.Lanes[i], uint8(i)
		upto := place
		if other != priority {
			// Times of arrival at which others of this lane come first. At the same moment the
			// more urgent does.
			latest := mine + int64(other)*PriorityHeadStart
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

// gaps are the places of the lanes that nobody waits at.
func (q *VQueue) gaps() uint64 {
	places := uint64(0)
	for _, lane := range q.Lanes {
		places += lane.Tail - lane.Head
	}
	return places - min(q.Waiting, places)
}

// ahead counts along lanes.
type ahead struct {
	line   LineReader
	key    QueueKey
	budget uint64 // places that may still be looked at
	gaps   uint64
}

// arrived finds the first place of a lane behind all that came up to a time. Those of a
// lane stand in the order of their arrival, so it is halved until it is found.
func (a *ahead) arrived(lane Lane, priority uint8, latest int64) (uint64, error) {
	low, high := lane.Head, lane.Tail
	for low < high {
		middle := low + (high-low)/2
		early := false
		for who, err := range a.line.QueuedBetween(a.key, priority, middle, high) {
			if err != nil {
				return 0, err
			}
			early = who.At <= latest
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

// count tells how many wait at the places of a lane.
func (a *ahead) count(from, before uint64, priority uint8) (n uint64, err error) {
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
