package arrow

import "encoding/binary"

// Batch collects rows, column by column, up to the size that the caller chooses. Each row appends
// one value to each column, with the method of its type or Null.
type Batch struct {
	columns []values
}

// NewBatch returns an empty batch.
func NewBatch(columns []Column) *Batch {
	b := &Batch{columns: make([]values, len(columns))}
	for i, c := range columns {
		b.columns[i].typ = c.Type
		if element, ok := c.Type.element(); ok {
			b.columns[i].elements = &values{typ: element}
		}
	}
	return b
}

// Rows returns the number of values of the first column.
func (b *Batch) Rows() int {
	if len(b.columns) == 0 {
		return 0
	}
	return b.columns[0].rows
}

// Null appends no value to a column.
func (b *Batch) Null(column int) { b.columns[column].null() }

// Int appends a value to a column of numbers, timestamps, durations or Bool.
func (b *Batch) Int(column int, n int64) { b.columns[column].number(uint64(n)) }

// Float appends a value to a column of type Float64, as its IEEE 754 bits.
func (b *Batch) Float(column int, bits uint64) { b.columns[column].number(bits) }

// Text appends a value to a column of type Text or Binary.
func (b *Batch) Text(column int, v []byte) { b.columns[column].text(v) }

// Texts appends a value to a column of type TextList.
func (b *Batch) Texts(column int, list []string) {
	c := &b.columns[column]
	for _, v := range list {
		c.elements.text([]byte(v))
	}
	c.list()
}

// Numbers appends a value to a column of type Uint32List.
func (b *Batch) Numbers(column int, list []uint32) {
	c := &b.columns[column]
	for _, v := range list {
		c.elements.number(uint64(v))
	}
	c.list()
}

// values are the values of a column.
type values struct {
	typ      Type
	rows     int
	nulls    int
	valid    []byte // a bit for each row
	data     []byte // numbers, bits or texts
	ends     []int  // of each text in data, or of each list in elements
	elements *values
}

func setBit(bits []byte, i int, set bool) []byte {
	if i/8 == len(bits) {
		bits = append(bits, 0)
	}
	if set {
		bits[i/8] |= 1 << (i % 8)
	}
	return bits
}

func (v *values) added(valid bool) {
	v.valid = setBit(v.valid, v.rows, valid)
	v.rows++
	if !valid {
		v.nulls++
	}
}

func (v *values) number(n uint64) {
	switch v.typ {
	case Bool:
		v.data = setBit(v.data, v.rows, n != 0)
	case Uint32:
		v.data = binary.LittleEndian.AppendUint32(v.data, uint32(n))
	default:
		v.data = binary.LittleEndian.AppendUint64(v.data, n)
	}
	v.added(true)
}

func (v *values) text(b []byte) {
	v.data = append(v.data, b...)
	v.ends = append(v.ends, len(v.data))
	v.added(true)
}

func (v *values) list() {
	v.ends = append(v.ends, v.elements.rows)
	v.added(true)
}

func (v *values) null() {
	switch v.typ {
	case Text, Binary:
		v.text(nil)
	case TextList, Uint32List:
		v.list()
	default:
		v.number(0)
	}
	at := v.rows - 1
	v.valid[at/8] &^= 1 << (at % 8)
	v.nulls++
}

// parts are the nodes and buffers of a message.
type parts struct {
	nodes   [][2]int64 // rows and nulls of each column and each list's elements
	buffers [][2]int64 // positions and lengths in body
	body    []byte
}

func (p *parts) buffer(b []byte) {
	p.buffers = append(p.buffers, [2]int64{int64(len(p.body)), int64(len(b))})
	p.body = append(p.body, b...)
	for len(p.body)%8 != 0 {
		p.body = append(p.body, 0)
	}
}

func (p *parts) column(v *values) {
	p.nodes = append(p.nodes, [2]int64{int64(v.rows), int64(v.nulls)})
	if v.nulls == 0 {
		p.buffer(nil)
	} else {
		p.buffer(v.valid)
	}
	switch v.typ {
	case Text, Binary:
		ends := make([]byte, 8, 8*(len(v.ends)+1))
		for _, end := range v.ends {
			ends = binary.LittleEndian.AppendUint64(ends, uint64(end))
		}
		p.buffer(ends)
		p.buffer(v.data)
	case TextList, Uint32List:
		ends := make([]byte, 4, 4*(len(v.ends)+1))
		for _, end := range v.ends {
			ends = binary.LittleEndian.AppendUint32(ends, uint32(end))
		}
		p.buffer(ends)
		p.column(v.elements)
	default:
		p.buffer(v.data)
	}
}

// Append appends the batch as a message and empties it.
func (b *Batch) Append(dst []byte) []byte {
	var p parts
	rows := b.Rows()
	for i := range b.columns {
		v := &b.columns[i]
		p.column(v)
		empty := values{typ: v.typ}
		if v.elements != nil {
			empty.elements = &values{typ: v.elements.typ}
		}
		*v = empty
	}
	var m builder
	buffers := m.pairs(p.buffers)
	nodes := m.pairs(p.nodes)
	batch := m.table(scalar(8, uint64(rows)), object(nodes), object(buffers))
	return m.message(dst, headerRecordBatch, batch, p.body)
}

// message appends a message with its header and its body.
func (b *builder) message(dst []byte, kind uint8, header ref, body []byte) []byte {
	metadata := b.finish(b.table(scalar(2, version5), scalar(1, uint64(kind)), object(header), scalar(8, uint64(len(body)))))
	dst = append(dst, 0xff, 0xff, 0xff, 0xff)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(metadata)))
	return append(append(dst, metadata...), body...)
}
