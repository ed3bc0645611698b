package listing

import (
	"encoding/binary"
	"math/bits"

	"platform/internal/ids"
)

// table finds the row of an invocation: a hash table with open addressing and linear
// probing, at most three quarters full.
type table struct {
	slots []uint32 // row + 1; 0: free
	used  int
	shift uint // 64 - log2(len(slots))
}

const smallestTable = 256

// place returns the slot at which the search for an ID starts. Multiplication spreads IDs
// whose unique part is not random.
func (t *table) place(id *ids.Invocation) uint32 {
	h := binary.LittleEndian.Uint64(id[8:16]) ^ binary.LittleEndian.Uint64(id[16:]) ^ binary.LittleEndian.Uint64(id[:8])
	return uint32(h * 0x9e3779b97f4a7c15 >> t.shift)
}

// find returns the slot of an ID; false if it is not in the table.
func (t *table) find(c *columns, id *ids.Invocation) (slot uint32, found bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	mask := uint32(len(t.slots) - 1)
	for slot = t.place(id); t.slots[slot] != 0; slot = (slot + 1) & mask {
		if chunk, i := c.at(t.slots[slot] - 1); chunk.ids[i] == *id {
			return slot, true
		}
	}
	return slot, false
}

// add inserts a row whose ID is not in the table.
func (t *table) add(c *columns, row uint32) {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.resize(c, max(smallestTable, 2*len(t.slots)))
	}
	t.insert(c, row)
	t.used++
}

func (t *table) insert(c *columns, row uint32) {
	chunk, i := c.at(row)
	mask := uint32(len(t.slots) - 1)
	slot := t.place(&chunk.ids[i])
	for t.slots[slot] != 0 {
		slot = (slot + 1) & mask
	}
	t.slots[slot] = row + 1
}

// resize changes the number of slots, a power of two.
func (t *table) resize(c *columns, size int) {
	old := t.slots
	t.slots, t.shift = make([]uint32, size), uint(64-bits.TrailingZeros(uint(size)))
	for _, entry := range old {
		if entry != 0 {
			t.insert(c, entry-1)
		}
	}
}

// remove frees a slot and moves later entries of the same run into the gap.
func (t *table) remove(c *columns, slot uint32) {
	t.used--
	mask := uint32(len(t.slots) - 1)
	gap := slot
	for next := (gap + 1) & mask; t.slots[next] != 0; next = (next + 1) & mask {
		chunk, i := c.at(t.slots[next] - 1)
		if home := t.place(&chunk.ids[i]); (next-home)&mask >= (next-gap)&mask {
			t.slots[gap] = t.slots[next]
			gap = next
		}
	}
	t.slots[gap] = 0
}

// shrink halves the table until it is at least a quarter full.
func (t *table) shrink(c *columns) {
	size := len(t.slots)
	for size > smallestTable && 4*t.used < size {
		size /= 2
	}
	if size < len(t.slots) {
		t.resize(c, size)
	}
}

func (t *table) bytes() int { return 4 * len(t.slots) }
