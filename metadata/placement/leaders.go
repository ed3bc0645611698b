package placement

import "slices"

// preferUsable moves the preferred leader away from leaving nodes.
func (p *plan) preferUsable() {
	for _, q := range p.parts {
		if !q.settled || q.done || !p.leaving(q.Replicas[0]) {
			continue
		}
		if at := slices.IndexFunc(q.Replicas, p.usable); at > 0 {
			p.step(q, firstOf(q.Replicas, q.Replicas[at]), Lead)
		}
	}
}

// firstOf returns replicas with one of them moved to the front.
func firstOf(replicas []uint32, id uint32) []uint32 {
	return append([]uint32{id}, without(replicas, []uint32{id})...)
}

// spreadLeaders changes preferred leaders until no two nodes differ by more than one
// partition, as far as the placement of replicas permits. Moving a leader from an overloaded
// node may require a chain of moves through other nodes.
func (p *plan) spreadLeaders() {
	leads := map[uint32]int{}
	for _, q := range p.parts {
		if len(q.Replicas) > 0 {
			leads[q.Replicas[0]]++
		}
	}
	first := map[uint32]uint32{} // partition → new preferred leader
	for p.moveLeader(leads, first) {
	}
	for _, q := range p.parts {
		if id, decided := first[q.ID]; decided && id != q.Replicas[0] {
			p.step(q, firstOf(q.Replicas, id), Lead)
		}
	}
}

// moveLeader applies one chain of moves from a node with more leaders to one with fewer.
func (p *plan) moveLeader(leads map[uint32]int, first map[uint32]uint32) bool {
	for _, most := range slices.Backward(p.usableBy(leads)) {
		chain := p.chain(most, leads, first)
		if chain == nil {
			continue
		}
		for _, move := range chain {
			leads[p.leaderOf(move.part, first)]--
			leads[move.to]++
			first[move.part.ID] = move.to
		}
		return true
	}
	return false
}

// leaderMove changes the preferred leader of a partition.
type leaderMove struct {
	part *part
	to   uint32
}

// chain returns the shortest chain of moves from a node to one that leads at least two
// partitions less, by breadth-first search; nil if there is none.
func (p *plan) chain(from uint32, leads map[uint32]int, first map[uint32]uint32) []leaderMove {
	via := map[uint32]leaderMove{from: {}}
	for queue := []uint32{from}; len(queue) > 0; queue = queue[1:] {
		node := queue[0]
		if leads[from]-leads[node] >= 2 {
			var chain []leaderMove
			for node != from {
				l := via[node]
				chain = append(chain, l)
				node = p.leaderOf(l.part, first)
			}
			return chain
		}
		for _, q := range p.parts {
			if !q.settled || q.done || p.leaderOf(q, first) != node {
				continue
			}
			for _, id := range q.Replicas {
				if _, seen := via[id]; !seen && p.usable(id) {
					via[id] = leaderMove{q, id}
					queue = append(queue, id)
				}
			}
		}
	}
	return nil
}

// leaderOf returns the preferred leader of a partition, including the moves decided so far.
func (p *plan) leaderOf(q *part, first map[uint32]uint32) uint32 {
	if id, decided := first[q.ID]; decided {
		return id
	}
	return q.Replicas[0]
}
