package partition

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"platform/internal/ids"
	"platform/partition/machine"
)

// recentIDs holds the IDs of the invocations that a leadership has proposed recently. Without it,
// every replica looks up the ID of a new invocation in its tables, and almost never finds it, since
// the ingress has just generated the ID at random. The leader can prove that an ID is new, and
// records that in the log.
//
// The proof: the ingress reads a Moment of the leadership before it sends an ID for the first
// time. No other node has the ID until then, so only this leadership can have created the
// invocation since: entries of earlier leaderships are refused from its start on, and later
// leaderships do not accept its moments. An ID that this leadership has not proposed since that
// moment is therefore new. Repeated, delayed and relayed requests carry the same moment.
type recentIDs struct {
	leadership uint64

	// mu covers the fields below. It is held until a command is in the queue of the proposer,
	// so that no repetition overtakes one with the mark.
	mu       sync.Mutex
	number   uint64 // of the moment: how often current was full
	current  map[uint64]struct{}
	previous map[uint64]struct{}
}

// minRecentIDs is how many IDs are kept at least, and half of those kept at most.
const minRecentIDs = 4096

func newRecentIDs() *recentIDs {
	return &recentIDs{leadership: rand.Uint64() | 1, current: map[uint64]struct{}{}, previous: map[uint64]struct{}{}}
}

// now returns the current moment.
func (r *recentIDs) now() machine.Moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return machine.Moment{Leadership: r.leadership, Number: r.number}
}

// addLocked records an ID that is about to be proposed. It reports whether the ID is certainly
// new; since is a moment that was read before the ID was first sent, zero if there is none.
func (r *recentIDs) addLocked(id ids.Invocation, since machine.Moment) (fresh bool) {
	// Part of the ID is enough: if another one shares it, there is one lookup more.
	key := binary.LittleEndian.Uint64(id[len(id)-8:])
	_, known := r.current[key]
	if !known {
		_, known = r.previous[key]
	}
	if !known {
		if len(r.current) >= minRecentIDs {
			r.current, r.previous = r.previous, r.current
			clear(r.current)
			r.number++
		}
		r.current[key] = struct{}{}
	}
	return !known && since.Leadership == r.leadership && since.Number+1 >= r.number
}

// markedLocked returns an invocation as it is proposed: with the mark that its ID is new,
// instead of the moment from which that follows. Only prompt commands are marked. Others may be overtaken by a
// repetition that is smaller, for example because a node dropped its baggage, or that is deferred.
func (r *recentIDs) markedLocked(inv *machine.Invoke, p priority) *machine.Invoke {
	fresh := r.addLocked(inv.ID, inv.Since) && p == prompt
	if inv.Fresh == fresh && inv.Since == (machine.Moment{}) {
		return inv
	}
	marked := *inv // the caller may retry it, possibly elsewhere
	marked.Fresh, marked.Since = fresh, machine.Moment{}
	return &marked
}

// Moment returns the current moment of the leadership, zero if this replica does not lead.
func (p *Partition) Moment() machine.Moment {
	l, err := p.leader()
	if err != nil {
		return machine.Moment{}
	}
	return l.recentIDs.now()
}
