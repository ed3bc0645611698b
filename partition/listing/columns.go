package listing

import (
	"math"
	"unsafe"

	"platform/internal/ids"
	"platform/partition/machine"
)

// chunkRows is the number of rows that are allocated together, a power of two.
const chunkRows = 1024

// chunk is the columns of some rows. Numbers refer to interned values.
type chunk struct {
	ids         [chunkRows]ids.Invocation
	created     [chunkRows]int64
	modified    [chunkRows]int64
	completed   [chunkRows]int64
	first       [chunkRows]int64  // first failure with the cause of the current one; 0: it belongs to no group
	key         [chunkRows]uint64 // hashes
	idempotency [chunkRows]uint64 // 0: none was given
	target      [chunkRows]uint32
	deployment  [chunkRows]uint32
	limit       [chunkRows]uint32
	group       [chunkRows]uint32 // noGroup, otherGroup or a failure group
	code        [chunkRows]uint32
	status      [chunkRows]machine.Status
	traits      [chunkRows]traits

	invoked marks // the rows with status Invoked
	failed  marks // the rows with a failure group
	// Bounds of the columns created and modified. They are not narrowed when rows are removed.
	createdIn, modifiedIn bounds
}

// marks is a set of rows of a chunk.
type marks [chunkRows / 64]uint64

func (m *marks) set(i uint32, on bool) {
	if on {
		m[i/64] |= 1 << (i % 64)
	} else {
		m[i/64] &^= 1 << (i % 64)
	}
}

// bounds are the lowest and the highest value of a column.
type bounds struct{ low, high int64 }

func (b *bounds) include(v int64) { b.low, b.high = min(b.low, v), max(b.high, v) }

const chunkBytes = int(unsafe.Sizeof(chunk{}))

// traits are the result and the source of an invocation, and whether its target has a key.
type traits uint8

const keyedTrait = 0x80

func traitsOf(inv *machine.Invocation) traits {
	t := traits(resultOf(inv)) | traits(inv.Source.Kind)<<4
	if inv.Target.Type.Keyed() {
		t |= keyedTrait
	}
	return t
}

func (t traits) result() Result             { return Result(t & 0xf) }
func (t traits) source() machine.SourceKind { return machine.SourceKind(t >> 4 & 0x7) }
func (t traits) keyed() bool                { return t&keyedTrait != 0 }

// columns are the rows of an index, without gaps.
type columns struct {
	chunks []*chunk
	rows   uint32
}

// at returns the chunk of a row and its position there.
func (c *columns) at(row uint32) (*chunk, uint32) {
	return c.chunks[row/chunkRows], row % chunkRows
}

// full reports whether the next row needs another chunk.
func (c *columns) full() bool { return int(c.rows) == len(c.chunks)*chunkRows }

// grow adds a row, which the caller fills.
func (c *columns) grow() uint32 {
	if c.full() {
		c.chunks = append(c.chunks, new(chunk))
	}
	c.rows++
	if first, i := c.at(c.rows - 1); i == 0 {
		none := bounds{math.MaxInt64, math.MinInt64}
		first.createdIn, first.modifiedIn = none, none
	}
	return c.rows - 1
}

// shrink removes the last row. An unused chunk is kept, so that a row that comes and goes at
// the edge of a chunk does not allocate one each time.
func (c *columns) shrink() {
	c.rows--
	if keep := int(c.rows)/chunkRows + 2; keep < len(c.chunks) {
		clear(c.chunks[keep:])
		c.chunks = c.chunks[:keep]
	}
}

// trim removes unused chunks.
func (c *columns) trim() {
	keep := (int(c.rows) + chunkRows - 1) / chunkRows
	clear(c.chunks[keep:])
	c.chunks = c.chunks[:keep]
}

// move copies a row over another one.
func (c *columns) move(from, to uint32) {
	f, i := c.at(from)
	t, j := c.at(to)
	t.ids[j], t.created[j], t.modified[j], t.completed[j] = f.ids[i], f.created[i], f.modified[i], f.completed[i]
	t.first[j] = f.first[i]
	t.key[j], t.idempotency[j] = f.key[i], f.idempotency[i]
	t.target[j], t.deployment[j], t.limit[j], t.group[j], t.code[j] = f.target[i], f.deployment[i], f.limit[i], f.group[i], f.code[i]
	t.status[j], t.traits[j] = f.status[i], f.traits[i]
	t.mark(j)
	f.unmark(i)
}

// mark adds a row to the marks and bounds of its chunk.
func (c *chunk) mark(i uint32) {
	c.invoked.set(i, c.status[i] == machine.Invoked)
	c.failed.set(i, c.group[i] != noGroup)
	c.createdIn.include(c.created[i])
	c.modifiedIn.include(c.modified[i])
}

// unmark removes a row from the marks of its chunk.
func (c *chunk) unmark(i uint32) {
	c.invoked.set(i, false)
	c.failed.set(i, false)
}
