package varint

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesAreReadAsWritten(t *testing.T) {
	b := binary.AppendUvarint(nil, 1<<63)
	b = binary.AppendVarint(b, -300)
	b = AppendBytes(AppendBytes(b, []byte("key")), nil)
	r := Reader{Rest: b}
	require.Equal(t, uint64(1<<63), r.Uvarint())
	require.Equal(t, int64(-300), r.Varint())
	require.Equal(t, "key", string(r.Bytes()))
	require.Empty(t, r.Bytes())
	require.Empty(t, r.Rest)
	require.False(t, r.Bad)
}

func TestTruncatedValuesAreBad(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing": nil, "half a number": {0x80}, "a number of more than 64 bits": {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
		"fewer bytes than their length": {2, 'a'}, "a length near the largest number": binary.AppendUvarint(nil, ^uint64(0)),
	} {
		r := Reader{Rest: b}
		require.Empty(t, r.Bytes(), name)
		require.True(t, r.Bad, name)
	}
	r := Reader{Rest: []byte{0x80}}
	require.Zero(t, r.Varint())
	require.True(t, r.Bad)
}
