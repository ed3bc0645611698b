package placement

import "slices"

// assign places new partitions. They have no data yet, so all replicas are assigned in one step.
func (p *plan) assign() {
	for _, q := range p.parts {
		if len(q.Replicas) > 0 || len(q.Voters) > 0 {
			continue
		}
		var replicas []uint32
		for len(replicas) < p.factor {
			id := p.candidate(replicas)
			if id == 0 {
				break
			}
			replicas = append(replicas, id)
		}
		if len(replicas) > 0 {
			// Rotate, because the same nodes would lead while loads are equal.
			offset := int(q.ID) % len(replicas)
			p.step(q, slices.Concat(replicas[offset:], replicas[:offset]), Assign)
		}
	}
}

// retry redirects moves that are stuck because the target node, or a node with a remaining
// replica, is leaving.
func (p *plan) retry() {
	for _, q := range p.parts {
		if q.settled || q.done || p.redirect(q) {
			continue
		}
		// Prefer to keep the replica being removed: it has the data.
		stay := slices.DeleteFunc(without(q.Voters, q.Replicas), func(id uint32) bool { return !p.usable(id) })
		coming := without(q.Replicas, q.Voters)
		gone, leaves := p.worst(coming)
		instead := p.candidate(slices.Concat(q.Replicas, q.Voters))
		if !leaves && len(stay) > 0 {
			gone, leaves = p.worst(q.Replicas)
		}
		if !leaves {
			continue
		}
		if len(stay) > 0 {
			instead = stay[0]
		}
		replicas := replace(q.Replicas, gone, instead)
		if p.safe(q, replicas) { // no limit check: the move is already counted
			p.step(q, replicas, Retry)
		}
	}
}

// redirect replaces several targets of a move that are gone. Replacing one of them at a time would
// not be safe, since the others count as pending additions. A partition has several such targets
// after its recovery from one replica, or if it was growing from one.
func (p *plan) redirect(q *part) bool {
	gone := slices.DeleteFunc(without(q.Replicas, q.Voters), func(id uint32) bool { return !p.leaving(id) || p.alive(id) })
	left := without(q.Replicas, gone)
	if len(gone) < 2 || len(left) == 0 {
		return false
	}
	for _, replicas := range [][]uint32{p.grown(left), left} {
		if p.safe(q, replicas) {
			p.step(q, replicas, Retry)
			return true
		}
	}
	return false
}

// repair moves replicas away from leaving nodes.
func (p *plan) repair() {
	for _, q := range p.parts {
		if !q.settled || q.done {
			continue
		}
		gone, leaves := p.worst(q.Replicas)
		if !leaves {
			continue
		}
		if len(q.Replicas) > p.factor {
			p.move(q, replace(q.Replicas, gone, 0), Shrink)
		} else if instead := p.candidate(q.Replicas); instead != 0 {
			p.move(q, replace(q.Replicas, gone, instead), Replace)
		}
	}
}

// worst returns the leaving replica to replace first: one that is not alive, if any.
func (p *plan) worst(replicas []uint32) (worst uint32, leaves bool) {
	for _, id := range replicas {
		if p.leaving(id) && (!leaves || p.alive(worst) && !p.alive(id)) {
			worst, leaves = id, true
		}
	}
	return worst, leaves
}

// replace returns replicas with gone replaced by instead, or removed if instead is 0. The new
// node is appended; if gone was first, the second replica becomes the preferred leader.
func replace(replicas []uint32, gone, instead uint32) []uint32 {
	out := without(replicas, []uint32{gone})
	if instead != 0 {
		out = append(out, instead)
	}
	return out
}

// resize adjusts the number of replicas of partitions.
func (p *plan) resize() {
	for _, q := range p.parts {
		if !q.settled || q.done {
			continue
		}
		switch n := len(q.Replicas); {
		case n < p.factor:
			if replicas := p.grown(q.Replicas); len(replicas) > n {
				p.move(q, replicas, Grow)
			}
		case n > p.factor:
			p.move(q, replace(q.Replicas, p.surplus(q.Replicas), 0), Shrink)
		}
	}
}

// grown returns replicas and one more. A single replica gets all missing ones in one step: it is
// its own majority, and a partition of two would be unavailable if either failed.
func (p *plan) grown(replicas []uint32) []uint32 {
	grown := slices.Clone(replicas)
	for len(grown) < p.factor {
		id := p.candidate(grown)
		if id == 0 {
			break
		}
		grown = append(grown, id)
		if len(replicas) > 1 {
			break
		}
	}
	return grown
}

// surplus returns the replica to remove: one on a node that is not alive, otherwise on the
// most loaded node, but not the preferred leader.
func (p *plan) surplus(replicas []uint32) uint32 {
	least := replicas[len(replicas)-1]
	for _, id := range slices.Backward(replicas) {
		switch {
		case p.alive(least) && !p.alive(id):
			least = id
		case p.alive(least) == p.alive(id) && p.load[id] > p.load[least] && id != replicas[0]:
			least = id
		}
	}
	return least
}
