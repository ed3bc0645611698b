package placement

import (
	"cmp"
	"slices"
)

// balance moves replicas from the nodes that have most to those that have least,
// until no two differ by more than one. No move could be spared: as long as there are
// nodes with too many and nodes with too few, each takes from the former and gives to
// the latter, even if it has to wait for its turn.
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

// average is the number of replicas of each node if they are spread, rounded down and
// up.
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

// usableBy lists the usable nodes in ascending order of what they have.
func (p *plan) usableBy(has map[uint32]int) []uint32 {
	var ids []uint32
	for _, n := range p.nodes {
		if p.usable(n.ID) {
			ids = append(ids, n.ID)
		}
	}
	slices.SortStableFunc(ids, func(a, b uint32) int { return cmp.Compare(has[a], has[b]) })
	return ids
}

// movable is a partition in good health with a replica on one node and none on the
// other, one that does not lead if possible; nil if there is none.
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
