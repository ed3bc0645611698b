package arrow

import "encoding/binary"

// builder builds a FlatBuffer from its end to its start, so that everything that a table refers to
// is written before it. References are distances from the end of the buffer.
type builder struct {
	reversed []byte // the bytes in reverse order
}

// ref is the distance of an object from the end of the buffer; 0 is no object.
type ref uint32

func (b *builder) end() ref { return ref(len(b.reversed)) }

// put prepends bytes.
func (b *builder) put(bytes ...byte) {
	for i := len(bytes) - 1; i >= 0; i-- {
		b.reversed = append(b.reversed, bytes[i])
	}
}

func (b *builder) put16(n uint16) { b.put(binary.LittleEndian.AppendUint16(nil, n)...) }
func (b *builder) put32(n uint32) { b.put(binary.LittleEndian.AppendUint32(nil, n)...) }
func (b *builder) put64(n uint64) { b.put(binary.LittleEndian.AppendUint64(nil, n)...) }

// align pads so that the buffer has a length that is a multiple of size after n more bytes.
func (b *builder) align(size, n int) {
	for (len(b.reversed)+n)%size != 0 {
		b.put(0)
	}
}

// putRef prepends a reference, relative to its own position.
func (b *builder) putRef(to ref) { b.put32(uint32(b.end()) + 4 - uint32(to)) }

func (b *builder) text(s string) ref {
	b.align(4, len(s)+1)
	b.put(0)
	b.put([]byte(s)...)
	b.put32(uint32(len(s)))
	return b.end()
}

// refs writes a vector of references.
func (b *builder) refs(items []ref) ref {
	b.align(4, 0)
	for i := len(items) - 1; i >= 0; i-- {
		b.putRef(items[i])
	}
	b.put32(uint32(len(items)))
	return b.end()
}

// pairs writes a vector of structs of two 64-bit numbers.
func (b *builder) pairs(items [][2]int64) ref {
	b.align(8, 0)
	for i := len(items) - 1; i >= 0; i-- {
		b.put64(uint64(items[i][1]))
		b.put64(uint64(items[i][0]))
	}
	b.put32(uint32(len(items)))
	return b.end()
}

// field is a field of a table: a scalar of 1, 2, 4 or 8 bytes, or a reference. The zero field is
// absent.
type field struct {
	size  int
	value uint64
	to    ref
}

func scalar(size int, value uint64) field { return field{size: size, value: value} }
func object(to ref) field                 { return field{size: 4, to: to} }

// table writes a table with its fields in the order of their numbers.
func (b *builder) table(fields ...field) ref {
	base := b.end()
	at := make([]ref, len(fields))
	for i, f := range fields {
		if f.size == 0 {
			continue
		}
		b.align(f.size, f.size)
		switch {
		case f.to != 0:
			b.putRef(f.to)
		case f.size == 1:
			b.put(byte(f.value))
		case f.size == 2:
			b.put16(uint16(f.value))
		case f.size == 4:
			b.put32(uint32(f.value))
		default:
			b.put64(f.value)
		}
		at[i] = b.end()
	}
	b.align(4, 0)
	vtable := 4 + 2*len(fields)
	b.put32(uint32(vtable)) // the distance to the vtable, which precedes the table directly
	table := b.end()
	for i := len(fields) - 1; i >= 0; i-- {
		if at[i] == 0 {
			b.put16(0)
			continue
		}
		b.put16(uint16(table - at[i]))
	}
	b.put16(uint16(table - base))
	b.put16(uint16(vtable))
	return table
}

// finish writes the reference to the root table and returns the buffer.
func (b *builder) finish(root ref) []byte {
	b.align(8, 4)
	b.putRef(root)
	out := make([]byte, len(b.reversed))
	for i, c := range b.reversed {
		out[len(out)-1-i] = c
	}
	return out
}
