package codec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/feature"
)

func FuzzDecode(f *testing.F) {
	for _, k := range commandKinds {
		b, err := k.encode(k.full())
		require.NoError(f, err)
		f.Add(Seal(feature.Level1, 1, 1, [][]byte{b}))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, commands, err := Decode(data)
		if err != nil {
			return
		}
		var encoded [][]byte
		for _, c := range commands {
			b, err := EncodeCommand(feature.Supported(), c)
			require.NoError(t, err)
			encoded = append(encoded, b)
		}
		gotHeader, got, err := Decode(Seal(h.Level, h.Epoch, h.Time, encoded))
		require.NoError(t, err)
		require.Equal(t, h, gotHeader)
		require.Equal(t, commands, got)
	})
}

// FuzzRecords decodes the bytes as a record of each kind.
func FuzzRecords(f *testing.F) {
	for _, k := range recordKinds {
		b, err := k.encode(k.full())
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, k := range recordKinds {
			v, err := k.decode(data)
			if err != nil {
				continue
			}
			b, err := k.encode(v)
			require.NoError(t, err)
			got, err := k.decode(b)
			require.NoError(t, err)
			require.Equal(t, v, got)
		}
	})
}
