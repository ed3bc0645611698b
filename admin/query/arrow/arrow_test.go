package arrow

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// reader reads FlatBuffers as their specification describes them.
type reader []byte

func (r reader) u16(at int) int { return int(binary.LittleEndian.Uint16(r[at:])) }
func (r reader) u32(at int) int { return int(binary.LittleEndian.Uint32(r[at:])) }
func (r reader) u64(at int) int { return int(binary.LittleEndian.Uint64(r[at:])) }
func (r reader) follow(at int) int {
	return at + r.u32(at)
}

// field returns the position of a field of the table at a position, 0 if it is absent.
func (r reader) field(table, n int) int {
	vtable := table - r.u32(table)
	if 4+2*n >= r.u16(vtable) || r.u16(vtable+4+2*n) == 0 {
		return 0
	}
	at := r.u16(vtable + 4 + 2*n)
	if at >= r.u16(vtable+2) {
		panic("a field lies outside of its table")
	}
	return table + at
}

func (r reader) text(at int) string {
	at = r.follow(at)
	return string(r[at+4 : at+4+r.u32(at)])
}

// message returns the metadata, the body and the rest of a stream.
func message(t *testing.T, stream []byte) (metadata reader, body, rest []byte) {
	t.Helper()
	require.Equal(t, 0xffffffff, reader(stream).u32(0))
	n := reader(stream).u32(4)
	require.Zero(t, n%8, "messages are aligned")
	metadata, rest = reader(stream[8:8+n]), stream[8+n:]
	if n == 0 {
		return nil, nil, rest
	}
	root := metadata.follow(0)
	require.Equal(t, version5, metadata.u16(metadata.field(root, 0)))
	length := metadata.u64(metadata.field(root, 3))
	require.Zero(t, length%8)
	return metadata, rest[:length], rest[length:]
}

func TestSchema(t *testing.T) {
	columns := []Column{{"id", Text}, {"created_at", Timestamp}, {"n", Int64}, {"u", Uint32}, {"services", TextList}, {"ok", Bool}}
	m, body, rest := message(t, AppendEnd(AppendSchema(nil, columns)))
	require.Empty(t, body)
	root := m.follow(0)
	require.Equal(t, byte(headerSchema), m[m.field(root, 1)])
	fields := m.follow(m.field(m.follow(m.field(root, 2)), 1))
	require.Equal(t, len(columns), m.u32(fields))

	kinds := []byte{typeLargeUtf8, typeTimestamp, typeInt, typeInt, typeList, typeBool}
	for i, c := range columns {
		f := m.follow(fields + 4 + 4*i)
		require.Equal(t, c.Name, m.text(m.field(f, 0)))
		require.Equal(t, byte(1), m[m.field(f, 1)], "every column may be NULL")
		require.Equal(t, kinds[i], m[m.field(f, 2)])
		description := m.follow(m.field(f, 3))
		children := m.follow(m.field(f, 5))
		switch c.Type {
		case Timestamp:
			require.Equal(t, milliseconds, m.u16(m.field(description, 0)))
			require.Equal(t, "+00:00", m.text(m.field(description, 1)))
		case Int64:
			require.Equal(t, 64, m.u32(m.field(description, 0)))
			require.Equal(t, byte(1), m[m.field(description, 1)])
		case Uint32:
			require.Equal(t, 32, m.u32(m.field(description, 0)))
			require.Equal(t, byte(0), m[m.field(description, 1)])
		case TextList:
			require.Equal(t, 1, m.u32(children))
			require.Equal(t, byte(typeLargeUtf8), m[m.field(m.follow(children+4), 2)])
		default:
			require.Zero(t, m.u32(children))
		}
	}
	end, _, rest := message(t, rest)
	require.Empty(t, end)
	require.Empty(t, rest)
}

func TestBatch(t *testing.T) {
	b := NewBatch([]Column{{"id", Text}, {"n", Int64}, {"ok", Bool}, {"list", Uint32List}})
	for i := range 9 {
		b.Text(0, []byte("row"))
		b.Int(1, int64(-i))
		b.Int(2, int64(i%2))
		b.Numbers(3, []uint32{uint32(i), 7})
	}
	for column := range 4 {
		b.Null(column)
	}
	require.Equal(t, 10, b.Rows())
	m, body, rest := message(t, b.Append(nil))
	require.Empty(t, rest)
	require.Zero(t, b.Rows())

	batch := m.follow(m.field(m.follow(0), 2))
	require.Equal(t, 10, m.u64(m.field(batch, 0)))
	nodes := m.follow(m.field(batch, 1))
	var counts [][2]int
	for i := range m.u32(nodes) {
		counts = append(counts, [2]int{m.u64(nodes + 4 + 16*i), m.u64(nodes + 12 + 16*i)})
	}
	require.Equal(t, [][2]int{{10, 1}, {10, 1}, {10, 1}, {10, 1}, {18, 0}}, counts)

	buffers := m.follow(m.field(batch, 2))
	var parts [][]byte
	for i := range m.u32(buffers) {
		at, n := m.u64(buffers+4+16*i), m.u64(buffers+12+16*i)
		require.Zero(t, at%8)
		parts = append(parts, body[at:at+n])
	}
	require.Len(t, parts, 3+2+2+2+2)
	require.Equal(t, []byte{0xff, 0x01}, parts[0], "the last row is NULL")
	require.Equal(t, 27, reader(parts[1]).u64(8*9))
	require.Equal(t, 27, reader(parts[1]).u64(8*10))
	require.Equal(t, "rowrow", string(parts[2][:6]))
	require.Equal(t, int64(-8), int64(reader(parts[4]).u64(8*8)))
	require.Equal(t, []byte{0b10101010, 0}, parts[6])
	require.Equal(t, 18, reader(parts[8]).u32(4*9))
	require.Equal(t, []byte{8, 0, 0, 0, 7, 0, 0, 0}, parts[10][8*8:])
}
