package placement

import (
	"cmp"
	"slices"
)

// balance moves replicas from the most to the least loaded nodes, until no two nodes differ
// by more than one. The number of moves is minimal: as long as there are nodes above and
// below the average, each move is from one of the former to one of the latter.
func (p *plan) balance() {
	for !p.full() && p.balanceOnce() {
	}
}

func (p *plan) balanceOnce() bool {
	byLoad := p.usableBy(p.load)
	low, high := p.average(byLoad)
	above, below := 0, 0
	for _, id := range byLoad {
		above += max(0, p.load[id]-high)
		below += max(0, low-p.load[id])
	}
	for _, most := range slices.Backward(byLoad) {
		for _, least := range byLoad {
			if p.load[most]-p.load[least] < 2 ||
				p.load[most] <= high && above >= below || p.load[least] >= low && below >= above {
				break
			}
			if q := p.movable(most, least); q != nil {
				return p.move(q, replace(q.Replicas, most, least), Balance)
			}
		}
	}
	return false
}

// average returns the average number of replicas per node, rounded down and up.
func (p *plan) average(nodes []uint32) (low, high int) {
	if len(nodes) == 0 {
		return 0, 0
	}
	sum := 0
	for _, id := range nodes {
		sum += p.load[id]
	}
	return sum / len(nodes), (sum + len(nodes) - 1) / len(nodes)
}

// usableBy returns the usable nodes in ascending order of a count.
func (p *plan) usableBy(count map[uint32]int) []uint32 {
	var ids []uint32
	for _, n := range p.nodes {
		if p.usable(n.ID) {
			ids = append(ids, n.ID)
		}
	}
	slices.SortStableFunc(ids, func(a, b uint32) int { return cmp.Compare(count[a], count[b]) })
	return ids
}

// movable returns a healthy partition with a replica on from and none on to, preferably one
// whose replica does not lead; nil if there is none.
func (p *plan) movable(from, to uint32) (found *part) {
	for _, q := range p.parts {
		if !q.settled || q.done || len(q.Replicas) != p.factor || !p.all(q.Replicas, p.usable) ||
			!slices.Contains(q.Replicas, from) || slices.Contains(q.Replicas, to) {
			continue
		}
		if q.Leader != from && q.Replicas[0] != from {
			return q
		}
		if found == nil {
			found = q
		}
	}
	return found
}
