package enroll

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseToken checks that a text is either refused or a token that has one text.
func FuzzParseToken(f *testing.F) {
	valid := Token{ID: encoding.EncodeToString(make([]byte, tokenIDBytes))}.Text()
	for _, seed := range []string{"", tokenPrefix, valid, " " + valid + "\n", valid[:len(valid)-1], valid + "_x", strings.ReplaceAll(valid, "_", "")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			require.Equal(t, Token{}, token)
			require.Equal(t, errToken, err, "the text may be a secret with a typing error")
			return
		}
		again, err := ParseToken(token.Text())
		require.NoError(t, err)
		require.Equal(t, token, again)
		require.Equal(t, token.Hash(), again.Hash())
	})
}
