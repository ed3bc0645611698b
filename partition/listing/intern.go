package listing

// interned numbers the distinct values of a column. A number is reused once no row refers to
// it. 0 is the zero value.
type interned[K comparable] struct {
	numbers map[K]uint32
	values  []K
	refs    []uint32
	free    []uint32
	bytes   int
	size    func(K) int
}

func newInterned[K comparable](size func(K) int) interned[K] {
	return interned[K]{numbers: map[K]uint32{}, values: make([]K, 1), refs: make([]uint32, 1), size: size}
}

// internOverhead estimates the memory of an interned value beside its strings.
const internOverhead = 160

// number returns the number of a value and adds a reference to it. copied returns the value
// without references to memory of the caller.
func (t *interned[K]) number(v K, copied func(K) K) uint32 {
	if v == t.values[0] {
		return 0
	}
	n, known := t.numbers[v]
	if !known {
		v = copied(v)
		if last := len(t.free) - 1; last >= 0 {
			n, t.free = t.free[last], t.free[:last]
			t.values[n] = v
		} else {
			n = uint32(len(t.values))
			t.values, t.refs = append(t.values, v), append(t.refs, 0)
		}
		t.numbers[v] = n
		t.bytes += t.size(v) + internOverhead
	}
	t.refs[n]++
	return n
}

// release removes a reference. It reports whether that was the last one.
func (t *interned[K]) release(n uint32) (unused bool) {
	if n == 0 {
		return false
	}
	if t.refs[n]--; t.refs[n] > 0 {
		return false
	}
	v := t.values[n]
	t.bytes -= t.size(v) + internOverhead
	delete(t.numbers, v)
	t.values[n] = t.values[0]
	t.free = append(t.free, n)
	return true
}

// len returns how many values other than the zero value are in use.
func (t *interned[K]) len() int { return len(t.numbers) }
