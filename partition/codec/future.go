package codec

import (
	"fmt"

	"platform/partition/journal"
)

// future writes the tree that an invocation waits for. Levels may be many and large,
// so the lengths of nested ones are found beforehand: a guess that is wrong would move
// all that is inside, once for each level.
func (w *writer) future(field uint64, f *journal.Future) {
	if len(f.Nested) == 0 { // nearly always
		n := w.open(field, partSize)
		w.futureLists(f)
		w.uint(5, uint64(f.Combinator))
		w.close(n)
		return
	}
	w.futureOf(field, f, futureSizes(nil, f))
}

// futureOf writes a tree with the sizes of its parts, and returns the sizes that are
// left for those behind it.
func (w *writer) futureOf(field uint64, f *journal.Future, sizes []int) []int {
	n := w.open(field, sizes[0])
	sizes = sizes[1:]
	w.futureLists(f)
	for i := range f.Nested {
		sizes = w.futureOf(4, &f.Nested[i], sizes)
	}
	w.uint(5, uint64(f.Combinator))
	w.close(n)
	return sizes
}

func (w *writer) futureLists(f *journal.Future) {
	w.packed(1, f.Completions)
	w.packed(2, f.Signals)
	for _, name := range f.Names {
		w.present(3, name)
	}
}

// futureSizes appends how long the encoded tree and each of its parts are, outer ones
// before inner ones, without tag and length.
func futureSizes(sizes []int, f *journal.Future) []int {
	at, size := len(sizes), packedSize(f.Completions)+packedSize(f.Signals)
	for _, name := range f.Names {
		size += partLen(len(name))
	}
	if f.Combinator != 0 {
		size += 1 + uvarintLen(uint64(f.Combinator))
	}
	sizes = append(sizes, 0)
	for i := range f.Nested {
		inner := len(sizes)
		sizes = futureSizes(sizes, &f.Nested[i])
		size += partLen(sizes[inner])
	}
	sizes[at] = size
	return sizes
}

func packedSize(list []uint32) int {
	if len(list) == 0 {
		return 0
	}
	size := 0
	for _, v := range list {
		size += uvarintLen(uint64(v))
	}
	return partLen(size)
}

// partLen is how long a field of size bytes is with its tag, of one digit, and length.
func partLen(size int) int { return 1 + uvarintLen(uint64(size)) + size }

func readFuture(b []byte, f *journal.Future) error { return readFutureAt(b, f, 1) }

// readFutureAt recurses, so it counts the levels: no tree exhausts the stack of the
// replicas that read it.
func readFutureAt(b []byte, f *journal.Future, level int) error {
	if level > journal.MaxDepth {
		return fmt.Errorf("%w: future nested deeper than %d", ErrMalformed, journal.MaxDepth)
	}
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case 1:
			f.Completions = r.packed(f.Completions)
		case 2:
			f.Signals = r.packed(f.Signals)
		case 3:
			*more(&r, &f.Names) = r.string()
		case 4:
			inner := more(&r, &f.Nested)
			if b := r.bytes(); r.err == nil {
				r.err = readFutureAt(b, inner, level+1)
			}
		case 5:
			f.Combinator = journal.Combinator(r.u8())
		default:
			r.unknown("future")
		}
	}
	return r.err
}

// tooDeep reports whether a Future could be written but not read.
func tooDeep(f *journal.Future, level int) bool {
	if level > journal.MaxDepth {
		return true
	}
	for i := range f.Nested {
		if tooDeep(&f.Nested[i], level+1) {
			return true
		}
	}
	return false
}
