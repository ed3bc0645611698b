package listing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNormalise(t *testing.T) {
	for _, c := range []struct{ message, key, want string }{
		{"", "", ""},
		{"connection refused", "", "connection refused"},
		{"dial tcp 127.0.0.1:9080: connection refused", "", "dial tcp ?: connection refused"},
		{"order 1234 not found", "", "order ? not found"},
		{"order ORD-2026-000123 not found", "", "order ORD-? not found"},
		{"account ada has no funds", "ada", "account ? has no funds"},
		{"account adam has no funds", "ada", "account adam has no funds"},
		{"account 7 of ada/7", "ada/7", "account ? of ?"},
		{`unknown user "Ada Lovelace" (id 7)`, "", `unknown user "?" (id ?)`},
		{"don't panic, it's 5 o'clock", "", "don't panic, it's ? o'clock"},
		{"field 'name' is missing", "", "field '?' is missing"},
		{"quote \" is open 5", "", "quote \" is open ?"},
		{"trace 3fa85f64-5717-4562-b3fc-2c963f66afa6 failed", "", "trace ? failed"},
		{"trace 3fa85f64-5717-abcd-b3fc-2c963f66afa6 failed", "", "trace ? failed"},
		{"inv_1aKf9fJ3kLm42xYz failed", "", "? failed"},
		{"at 0x7ffe12ab in frame 3", "", "at ? in frame ?"},
		{"HTTP/2 stream reset", "", "HTTP/? stream reset"},
		{"took 1.5s, limit 2,000 ms", "", "took ?s, limit ? ms"},
		{"2026-11-22T23:42:00.123Z timeout", "", "?T?Z timeout"},
		{"a\n\tb   c  ", "", "a b c"},
		{"payment declined: Ünïcode ключ 5", "", "payment declined: Ünïcode ключ ?"},
		{"feed the cafe", "", "feed the cafe"},
	} {
		got, more := normalise(c.message, c.key)
		require.Equal(t, c.want, got, c.message)
		require.False(t, more, c.message)
	}
}

func TestNormalisedMessagesAreBounded(t *testing.T) {
	for _, long := range []string{strings.Repeat("abc def ", 1<<20), strings.Repeat("ж", 5000), strings.Repeat("7", 1<<20), strings.Repeat("x", maxMessage+1)} {
		_, more := normalise(long, "")
		require.True(t, more, long[:20])
	}
	exact, more := normalise(strings.Repeat("x", maxMessage)+"\n", "")
	require.Len(t, exact, maxMessage)
	require.False(t, more)
	rapid.Check(t, func(t *rapid.T) {
		out, _ := normalise(rapid.String().Draw(t, "message"), rapid.StringN(0, 4, -1).Draw(t, "key"))
		require.LessOrEqual(t, len(out), maxMessage)
		require.True(t, utf8.ValidString(out))
	})
}
