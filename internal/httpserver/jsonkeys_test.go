package httpserver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRepeatedKey(t *testing.T) {
	for body, want := range map[string]string{
		``:                                    "",
		`null`:                                "",
		`"a"`:                                 "",
		`["a","a"]`:                           "",
		`{}`:                                  "",
		`{"a":1,"b":{"a":1},"c":[{"a":1}]}`:   "",
		`{"a":"a","b":"a"}`:                   "",
		`{"a":1,"A":1}`:                       "",
		`{"a":1,"a":2}`:                       "a",
		`{"a":1,"\u0061":2}`:                  "a",
		`{"a":{},"b":[],"a":2}`:               "a",
		`{"a":{"b":{"c":1,"d":2,"c":3}}}`:     "a.b.c",
		`{"a":[1,{"b":1},{"b":[],"b":2}]}`:    "a[2].b",
		`[[],[{"b":[],"b":2}]]`:               "[1][0].b",
		`{"a":1,"a":2`:                        "a",
		`{"a":1 "a":2}`:                       "",
		strings.Repeat(`[`, 20_000):           "",
		`{"a":[{"x":1},{"x":1}],"b":1,"b":2}`: "b",
	} {
		path, repeated := RepeatedKey([]byte(body), false)
		require.Equal(t, want, path, body)
		require.Equal(t, want != "", repeated, body)
	}
	for body, want := range map[string]string{
		`{"a":1,"A":1}`:           "A",
		`{"a":{"key":1,"KeY":1}}`: "a.KeY",
		`{"s":1,"ſ":1}`:           "ſ",
		`{"k":1,"K":1}`:           "K",
		`{"a":1,"b":1}`:           "",
	} {
		path, repeated := RepeatedKey([]byte(body), true)
		require.Equal(t, want, path, body)
		require.Equal(t, want != "", repeated, body)
	}
	_, repeated := RepeatedKey([]byte(`{"":1,"":2}`), false)
	require.True(t, repeated)
}
