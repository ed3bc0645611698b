package placement

import "slices"

// assign gives new partitions a place. They have no data yet, so that all replicas
// can be there from the start.
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
			// Least loaded first would let the same nodes lead as long as loads are equal.
			turn := int(q.ID) % len(replicas)
			p.step(q, slices.Concat(replicas[turn:], replicas[:turn]), Assign)
		}
	}
}

// retry looks after moves that came to a halt because a node is leaving that was to
// get the replica, or one that was to stay when another one goes.
func (p *plan) retry() {
	for _, q := range p.parts {
		if q.settled || q.done {
			continue
		}
		// The replica that was to go had best stay: it has the data.
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
		if p.safe(q, replicas) { // the bound does not matter, since the move is counted
			p.step(q, replicas, Retry)
		}
	}
}

// repair takes replicas from nodes that are leaving.
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

// worst is the replica that it is most urgent to replace.
func (p *plan) worst(replicas []uint32) (worst uint32, leaves bool) {
	for _, id := range replicas {
		if p.leaving(id) && (!leaves || p.alive(worst) && !p.alive(id)) {
			worst, leaves = id, true
		}
	}
	return worst, leaves
}

// replace is replicas with another node, or none, instead of one. What follows the
// one that was first leads in its place; a new node comes last.
func replace(replicas []uint32, gone, instead uint32) []uint32 {
	out := without(replicas, []uint32{gone})
	if instead != 0 {
		out = append(out, instead)
	}
	return out
}

// resize gives partitions the number of replicas that they should have.
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

// grown is replicas and one more, or, for the only one, as many as there should be: it
// agrees with itself on everything, and a partition of two stands still when either
// goes.
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

// surplus is the replica that is missed least: on a node that is not alive, or else on
// the one that has most. The first one leads and is missed most.
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
