package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"platform/partition/journal"
)

// future writes the tree that an invocation awaits. The sizes of nested levels are computed
// in advance: with a wrong size hint, closing each of many levels would move all bytes
// inside it.
func (w *writer) future(field protowire.Number, f *journal.Future) {
	if len(f.Nested) == 0 { // the common case
		n := w.open(field, sizeHint)
		w.futureLists(f)
		w.uint(fieldFutureCombinator, uint64(f.Combinator))
		w.close(n)
		return
	}
	w.futureSized(field, f, futureSizes(nil, f))
}

// futureSized writes a tree given the sizes of its nodes in preorder, and returns the
// remaining sizes.
func (w *writer) futureSized(field protowire.Number, f *journal.Future, sizes []int) []int {
	n := w.open(field, sizes[0])
	sizes = sizes[1:]
	w.futureLists(f)
	for i := range f.Nested {
		sizes = w.futureSized(fieldFutureNested, &f.Nested[i], sizes)
	}
	w.uint(fieldFutureCombinator, uint64(f.Combinator))
	w.close(n)
	return sizes
}

func (w *writer) futureLists(f *journal.Future) {
	w.packed(fieldFutureCompletions, f.Completions)
	w.packed(fieldFutureSignals, f.Signals)
	for _, name := range f.Names {
		w.explicitString(fieldFutureNames, name)
	}
}

// futureSizes appends the encoded sizes of the tree's nodes in preorder, without tag and
// length prefix.
func futureSizes(sizes []int, f *journal.Future) []int {
	at, size := len(sizes), packedSize(f.Completions)+packedSize(f.Signals)
	for _, name := range f.Names {
		size += fieldSize(len(name))
	}
	if f.Combinator != 0 {
		size += 1 + protowire.SizeVarint(uint64(f.Combinator))
	}
	sizes = append(sizes, 0)
	for i := range f.Nested {
		inner := len(sizes)
		sizes = futureSizes(sizes, &f.Nested[i])
		size += fieldSize(sizes[inner])
	}
	sizes[at] = size
	return sizes
}

// futureSize estimates the encoded size of a future, erring on the high side.
func futureSize(f *journal.Future) int {
	size := 32 + 5*(len(f.Completions)+len(f.Signals))
	for i := range f.Names {
		size += 8 + len(f.Names[i])
	}
	for i := range f.Nested {
		size += futureSize(&f.Nested[i])
	}
	return size
}

func packedSize(list []uint32) int {
	if len(list) == 0 {
		return 0
	}
	size := 0
	for _, v := range list {
		size += protowire.SizeVarint(uint64(v))
	}
	return fieldSize(size)
}

// fieldSize returns the encoded size of a bytes field: a tag of one byte, the length prefix
// and size bytes.
func fieldSize(size int) int { return 1 + protowire.SizeVarint(uint64(size)) + size }

func readFuture(b []byte, f *journal.Future) error { return readFutureAt(b, f, 1) }

// readFutureAt limits the depth of the recursion, so that no tree can exhaust the stack of a
// replica.
func readFutureAt(b []byte, f *journal.Future, level int) error {
	if level > journal.MaxDepth {
		return fmt.Errorf("%w: future nested deeper than %d", ErrMalformed, journal.MaxDepth)
	}
	r := reader{b: b}
	for r.next() {
		switch r.field {
		case fieldFutureCompletions:
			f.Completions = r.packed(f.Completions)
		case fieldFutureSignals:
			f.Signals = r.packed(f.Signals)
		case fieldFutureNames:
			*grow(&r, &f.Names) = r.string()
		case fieldFutureNested:
			inner := grow(&r, &f.Nested)
			if b := r.bytes(); r.err == nil {
				r.err = readFutureAt(b, inner, level+1)
			}
		case fieldFutureCombinator:
			f.Combinator = journal.Combinator(r.u8())
		default:
			r.unknown("future")
		}
	}
	return r.err
}

// tooDeep reports whether readers would reject a future for its depth.
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
