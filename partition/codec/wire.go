package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"platform/internal/feature"
	"platform/internal/ids"
)

// ErrMalformed is wrapped by every error about bytes that are not what they should
// be.
var ErrMalformed = errors.New("malformed record")

// Wire types of the protobuf encoding; the others are not used.
const (
	wireVarint = 0
	wireBytes  = 2
)

// writer appends fields to b. Zero values are left out.
type writer struct {
	b     []byte
	needs feature.Level // that readers must support, 0 if every server can read it
	what  string        // needs it, for people
}

// require notes that what is written is understood only from a feature level on. It is
// called next to each write of a command or field that a level introduces.
func (w *writer) require(level feature.Level, what string) {
	if level > w.needs {
		w.needs, w.what = level, what
	}
}

func (w *writer) tag(field, wire uint64) { w.uvarint(field<<3 | wire) }

// uvarint appends a number. Most have one digit, and this much is inlined.
func (w *writer) uvarint(v uint64) {
	if v < 0x80 {
		w.b = append(w.b, byte(v))
		return
	}
	w.b = binary.AppendUvarint(w.b, v)
}

func (w *writer) uint(field, v uint64) {
	if v != 0 {
		w.presentUint(field, v)
	}
}

// presentUint writes a number even if it is zero.
func (w *writer) presentUint(field, v uint64) {
	w.tag(field, wireVarint)
	w.uvarint(v)
}

func (w *writer) int(field uint64, v int64) { w.uint(field, uint64(v)) }

func (w *writer) bool(field uint64, v bool) {
	if v {
		w.uint(field, 1)
	}
}

func (w *writer) bytes(field uint64, v []byte) {
	if len(v) != 0 {
		w.tag(field, wireBytes)
		w.uvarint(uint64(len(v)))
		w.b = append(w.b, v...)
	}
}

func (w *writer) string(field uint64, v string) {
	if v != "" {
		w.present(field, v)
	}
}

// present writes a string even if it is empty.
func (w *writer) present(field uint64, v string) {
	w.tag(field, wireBytes)
	w.uvarint(uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) id(field uint64, v *ids.Invocation) {
	if !v.IsZero() {
		w.bytes(field, v[:])
	}
}

// packed writes a repeated number.
func (w *writer) packed(field uint64, v []uint32) {
	if len(v) == 0 {
		return
	}
	n := w.open(field, len(v))
	for _, x := range v {
		w.b = binary.AppendUvarint(w.b, uint64(x))
	}
	w.close(n)
}

// nested is a message being written inside of another one: where its tag, its
// length and its body begin.
type nested struct{ tag, length, body int }

// open begins a message. Its length is not known yet: room is left for that of
// about size bytes, and close moves the body in the rare case that it was wrong.
func (w *writer) open(field uint64, size int) nested {
	n := nested{tag: len(w.b)}
	w.tag(field, wireBytes)
	n.length = len(w.b)
	w.b = append(w.b, make([]byte, uvarintLen(uint64(size)))...)
	n.body = len(w.b)
	return n
}

// close ends a message.
func (w *writer) close(n nested) {
	size := len(w.b) - n.body
	body := n.length + uvarintLen(uint64(size))
	if body > n.body {
		w.b = append(w.b, make([]byte, body-n.body)...)
	}
	if body != n.body {
		copy(w.b[body:], w.b[n.body:n.body+size])
		w.b = w.b[:body+size]
	}
	binary.PutUvarint(w.b[n.length:body], uint64(size))
}

// closePart ends a message that is left out when it is empty.
func (w *writer) closePart(n nested) {
	if len(w.b) == n.body {
		w.b = w.b[:n.tag]
		return
	}
	w.close(n)
}

func uvarintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// reader walks over the fields of one message. The first error sticks and ends the
// walk. It moves an index and not a slice, because writing a pointer is dearer.
type reader struct {
	b     []byte
	at    int
	field uint64
	wire  uint64
	err   error
}

// next moves to the next field; false at the end or after an error.
func (r *reader) next() bool {
	if r.at >= len(r.b) || r.err != nil {
		return false
	}
	tag := uint64(r.b[r.at])
	if tag < 0x80 { // nearly always; this much saves a call per field
		r.at++
	} else {
		tag = r.longUvarint()
	}
	r.field, r.wire = tag>>3, tag&7
	return r.err == nil
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// unknown refuses the field that next has found.
func (r *reader) unknown(message string) {
	r.fail(fmt.Errorf("%w: %s has an unknown field %d", ErrMalformed, message, r.field))
}

func (r *reader) uvarint() uint64 {
	if r.at < len(r.b) {
		if v := r.b[r.at]; v < 0x80 {
			r.at++
			return uint64(v)
		}
	}
	return r.longUvarint()
}

func (r *reader) longUvarint() uint64 {
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.fail(fmt.Errorf("%w: bad number", ErrMalformed))
		return 0
	}
	r.at += n
	return v
}

// limited reads a number of at most limit.
func (r *reader) limited(limit uint64) uint64 {
	if r.wire != wireVarint {
		r.wrongWire("a number")
		return 0
	}
	v := r.uvarint()
	if v > limit {
		r.fail(fmt.Errorf("%w: field %d is too large", ErrMalformed, r.field))
		return 0
	}
	return v
}

func (r *reader) wrongWire(want string) {
	r.fail(fmt.Errorf("%w: field %d is not %s", ErrMalformed, r.field, want))
}

func (r *reader) u64() uint64 { return r.limited(math.MaxUint64) }
func (r *reader) i64() int64  { return int64(r.limited(math.MaxUint64)) }
func (r *reader) u32() uint32 { return uint32(r.limited(math.MaxUint32)) }
func (r *reader) u16() uint16 { return uint16(r.limited(math.MaxUint16)) }
func (r *reader) u8() uint8   { return uint8(r.limited(math.MaxUint8)) }
func (r *reader) bool() bool  { return r.limited(1) == 1 }

// bytes reads a field of bytes without copying; nil if it is empty.
func (r *reader) bytes() []byte {
	if r.wire != wireBytes {
		r.wrongWire("of bytes")
		return nil
	}
	var n uint64
	if r.at < len(r.b) && r.b[r.at] < 0x80 {
		n = uint64(r.b[r.at])
		r.at++
	} else {
		n = r.longUvarint()
	}
	if n > uint64(len(r.b)-r.at) {
		r.fail(fmt.Errorf("%w: field %d is cut off", ErrMalformed, r.field))
		return nil
	}
	if n == 0 {
		return nil
	}
	start := r.at
	r.at += int(n)
	return r.b[start:r.at:r.at]
}

func (r *reader) string() string {
	v := r.bytes()
	return unsafe.String(unsafe.SliceData(v), len(v))
}

func (r *reader) id(into *ids.Invocation) {
	v := r.bytes()
	if len(v) != len(into) {
		r.fail(fmt.Errorf("%w: id of %d bytes", ErrMalformed, len(v)))
		return
	}
	*into = ids.Invocation(v)
}

func (r *reader) packed(into []uint32) []uint32 {
	list := reader{b: r.bytes(), field: r.field}
	if into == nil {
		into = make([]uint32, 0, list.numbers())
	}
	for list.at < len(list.b) && list.err == nil {
		into = append(into, list.u32())
	}
	r.fail(list.err)
	return into
}

// numbers counts the numbers of a packed list.
func (r *reader) numbers() (n int) {
	for _, c := range r.b {
		if c < 0x80 {
			n++
		}
	}
	return n
}

// ended reports whether nothing follows.
func (r *reader) ended() bool { return r.at == len(r.b) }

// count is how many fields with that number follow, the current one included, so
// that a list can be made at once.
func (r *reader) count(field uint64) int {
	ahead, n := *r, 1
	ahead.skip()
	for ahead.next() {
		if ahead.field == field {
			n++
		}
		ahead.skip()
	}
	return n
}

func (r *reader) skip() {
	if r.wire == wireVarint {
		r.uvarint()
		return
	}
	r.bytes()
}

// into reads a message inside of the current one.
func into[T any](r *reader, v *T, read func([]byte, *T) error) {
	if b := r.bytes(); r.err == nil {
		r.err = read(b, v)
	}
}

// more grows a list by one element, which the caller fills. The first call makes
// room for all that follow.
func more[T any](r *reader, list *[]T) *T {
	if *list == nil {
		*list = make([]T, 0, r.count(r.field))
	}
	*list = append(*list, *new(T))
	return &(*list)[len(*list)-1]
}
