package keyring

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse checks that a file with keys is either refused or usable, and that an error does not
// contain what it refuses, which may be a key.
func FuzzParse(f *testing.F) {
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", KeyBytes)))
	for _, seed := range []string{"", key, key + "\n", "# a comment\n" + key + "," + key, key + "\r\n\x00", key[:40], strings.Repeat(key+"\n", 2*maxKeys)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := Parse(text)
		if err != nil {
			require.Nil(t, keys)
			for _, word := range strings.Fields(text) {
				if len(word) >= 40 {
					require.NotContains(t, err.Error(), word)
				}
			}
			return
		}
		ids := keys.IDs()
		require.NotEmpty(t, ids)
		require.LessOrEqual(t, len(ids), maxKeys)
		require.Contains(t, ids, keys.Newest())
	})
}
