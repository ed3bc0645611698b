package placement

import "slices"

// preferUsable lets no node lead that is leaving.
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

// firstOf is replicas with one of them at the front.
func firstOf(replicas []uint32, id uint32) []uint32 {
	return append([]uint32{id}, without(replicas, []uint32{id})...)
}

// spreadLeaders changes who should lead until no two nodes differ by more than one
// partition, as far as the replicas permit. A node that leads too many may have to
// pass one on to a second node, which passes another one on to a third.
func (p *plan) spreadLeaders() {
	leads := map[uint32]int{}
	for _, q := range p.parts {
		if len(q.Replicas) > 0 {
			leads[q.Replicas[0]]++
		}
	}
	first := map[uint32]uint32{} // by partition, as decided here
	for p.passOn(leads, first) {
	}
	for _, q := range p.parts {
		if id, decided := first[q.ID]; decided && id != q.Replicas[0] {
			p.step(q, firstOf(q.Replicas, id), Lead)
		}
	}
}

// passOn finds one chain from a node that leads more to one that leads less.
func (p *plan) passOn(leads map[uint32]int, first map[uint32]uint32) bool {
	for _, most := range slices.Backward(p.usableBy(leads)) {
		chain := p.chain(most, leads, first)
		if chain == nil {
			continue
		}
		for _, link := range chain {
			leads[p.leaderOf(link.part, first)]--
			leads[link.to]++
			first[link.part.ID] = link.to
		}
		return true
	}
	return false
}

// link lets another node lead a partition.
type link struct {
	part *part
	to   uint32
}

// chain is the shortest chain from a node to one that leads at least two less, by
// breadth-first search; nil if there is none.
func (p *plan) chain(from uint32, leads map[uint32]int, first map[uint32]uint32) []link {
	came := map[uint32]link{from: {}}
	for queue := []uint32{from}; len(queue) > 0; queue = queue[1:] {
		node := queue[0]
		if leads[from]-leads[node] >= 2 {
			var chain []link
			for node != from {
				l := came[node]
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
				if _, seen := came[id]; !seen && p.usable(id) {
					came[id] = link{q, id}
					queue = append(queue, id)
				}
			}
		}
	}
	return nil
}

// leaderOf is who should lead a partition as things are decided so far.
func (p *plan) leaderOf(q *part, first map[uint32]uint32) uint32 {
	if id, decided := first[q.ID]; decided {
		return id
	}
	return q.Replicas[0]
}
