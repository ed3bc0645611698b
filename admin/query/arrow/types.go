package arrow

// Type is the type of a column.
type Type uint8

// The types of columns. Timestamps and durations count milliseconds; timestamps are UTC.
const (
	Text Type = iota
	Int64
	Uint64
	Uint32
	Float64
	Bool
	Timestamp
	Duration
	Binary
	TextList
	Uint32List
)

// Column is a column of a table.
type Column struct {
	Name string
	Type Type
}

// Numbers of the format.
const (
	version5 = 4

	headerSchema      = 1
	headerRecordBatch = 3

	typeInt           = 2
	typeFloatingPoint = 3
	typeBool          = 6
	typeTimestamp     = 10
	typeList          = 12
	typeDuration      = 18
	typeLargeBinary   = 19
	typeLargeUtf8     = 20

	doublePrecision = 2
	milliseconds    = 1
)

// describe writes the type of a column and returns its number.
func (b *builder) describe(t Type) (number uint8, description ref) {
	switch t {
	case Int64, Uint64, Uint32:
		bits, signed := uint64(64), uint64(0)
		if t == Uint32 {
			bits = 32
		}
		if t == Int64 {
			signed = 1
		}
		return typeInt, b.table(scalar(4, bits), scalar(1, signed))
	case Float64:
		return typeFloatingPoint, b.table(scalar(2, doublePrecision))
	case Bool:
		return typeBool, b.table()
	case Timestamp:
		zone := b.text("+00:00")
		return typeTimestamp, b.table(scalar(2, milliseconds), object(zone))
	case Duration:
		return typeDuration, b.table(scalar(2, milliseconds))
	case Binary:
		return typeLargeBinary, b.table()
	case TextList, Uint32List:
		return typeList, b.table()
	default:
		return typeLargeUtf8, b.table()
	}
}

// element returns the type of the elements of a list.
func (t Type) element() (Type, bool) {
	switch t {
	case TextList:
		return Text, true
	case Uint32List:
		return Uint32, true
	default:
		return 0, false
	}
}

// column writes the description of a column.
func (b *builder) column(c Column) ref {
	var children ref
	if element, ok := c.Type.element(); ok {
		children = b.refs([]ref{b.column(Column{"item", element})})
	} else {
		children = b.refs(nil)
	}
	number, description := b.describe(c.Type)
	name := b.text(c.Name)
	return b.table(object(name), scalar(1, 1), scalar(1, uint64(number)), object(description), field{}, object(children))
}

// AppendSchema appends the message that a stream begins with.
func AppendSchema(dst []byte, columns []Column) []byte {
	var b builder
	described := make([]ref, len(columns))
	for i, c := range columns {
		described[i] = b.column(c)
	}
	fields := b.refs(described)
	schema := b.table(scalar(2, 0), object(fields))
	return b.message(dst, headerSchema, schema, nil)
}

// AppendEnd appends the mark at the end of a stream.
func AppendEnd(dst []byte) []byte { return append(dst, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0) }
