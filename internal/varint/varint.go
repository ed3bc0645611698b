// Package varint reads and writes sequences of variable-length integers and of byte slices
// with their length in front, as stored by Raft groups.
package varint

import "encoding/binary"

// AppendBytes appends the length of v and v.
func AppendBytes(dst, v []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

// Reader reads from the front of a slice. After the first damaged value, Bad is set and the
// results of further reads are meaningless, so that a caller may check it once, at the end.
type Reader struct {
	Rest []byte // what has not been read
	Bad  bool
}

// Uvarint reads an unsigned integer.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Varint reads a signed integer.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.Rest)
	if n <= 0 {
		r.Bad = true
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Bytes reads a length and that many bytes; the result aliases the input.
func (r *Reader) Bytes() []byte {
	n := r.Uvarint()
	if r.Bad || n > uint64(len(r.Rest)) {
		r.Bad = true
		return nil
	}
	out := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return out
}
