package listing

import (
	"cmp"
	"slices"

	"platform/internal/ids"
	"platform/partition/machine"
)

// Place is the position of an invocation in a list.
type Place struct {
	At int64 // the time by which the list is sorted
	ID ids.Invocation
}

// Order is the order of a list.
type Order struct {
	ByModified  bool // else by creation
	OldestFirst bool // else the newest first
}

// Compare returns a negative number if a comes before b.
func (o Order) Compare(a, b Place) int {
	if !o.OldestFirst {
		a, b = b, a
	}
	if a.At != b.At {
		return cmp.Compare(a.At, b.At)
	}
	return a.ID.Compare(b.ID)
}

// PlaceOf returns the place of an invocation.
func (o Order) PlaceOf(inv *machine.Invocation) Place {
	if o.ByModified {
		return Place{inv.ModifiedAt, inv.ID}
	}
	return Place{inv.CreatedAt, inv.ID}
}

// Top selects the first places of a list.
type Top struct {
	order Order
	after *Place // only places after it; nil: all
	limit int
	heap  []Place // the last place first
}

// NewTop returns a Top of up to limit places after the given one.
func NewTop(order Order, after *Place, limit int) *Top {
	return &Top{order: order, after: after, limit: limit}
}

// Add offers a place.
func (t *Top) Add(p Place) {
	if t.limit == 0 || t.after != nil && t.order.Compare(p, *t.after) <= 0 {
		return
	}
	if len(t.heap) < t.limit {
		t.heap = append(t.heap, p)
		t.up(len(t.heap) - 1)
		return
	}
	if t.order.Compare(p, t.heap[0]) < 0 {
		t.heap[0] = p
		t.down(0)
	}
}

// skips reports whether no place at a time can be among the first ones.
func (t *Top) skips(at int64) bool {
	full := len(t.heap) == t.limit && t.limit > 0
	if t.order.OldestFirst {
		return t.after != nil && at < t.after.At || full && at > t.heap[0].At
	}
	return t.after != nil && at > t.after.At || full && at < t.heap[0].At
}

// skipsAll reports whether no place at a time within bounds can be among the first ones.
func (t *Top) skipsAll(in bounds) bool {
	full := len(t.heap) == t.limit && t.limit > 0
	if t.order.OldestFirst {
		return t.after != nil && in.high < t.after.At || full && in.low > t.heap[0].At
	}
	return t.after != nil && in.low > t.after.At || full && in.high < t.heap[0].At
}

func (t *Top) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if t.order.Compare(t.heap[i], t.heap[parent]) <= 0 {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

func (t *Top) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(t.heap) {
			return
		}
		if child+1 < len(t.heap) && t.order.Compare(t.heap[child+1], t.heap[child]) > 0 {
			child++
		}
		if t.order.Compare(t.heap[child], t.heap[i]) <= 0 {
			return
		}
		t.heap[i], t.heap[child] = t.heap[child], t.heap[i]
		i = child
	}
}

// Places returns the first places in order.
func (t *Top) Places() []Place {
	sorted := slices.Clone(t.heap)
	slices.SortFunc(sorted, t.order.Compare)
	return sorted
}
