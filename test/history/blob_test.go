package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseBlob(t *testing.T) {
	b := Blob{ID: "a", Size: 1000, Seq: 3}
	parsed, err := ParseBlob(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, b, parsed)
	damaged := b.Bytes()
	damaged[900] ^= 1
	for name, value := range map[string][]byte{"empty": nil, "short": b.Bytes()[:1000], "long": append(b.Bytes(), 0), "flipped": damaged} {
		_, err := ParseBlob(value)
		require.ErrorContains(t, err, "corrupt: ", name)
	}
}
