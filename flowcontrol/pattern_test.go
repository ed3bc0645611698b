package flowcontrol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPatterns(t *testing.T) {
	for text, want := range map[string]struct {
		pattern Pattern
		level   Level
		rank    int
	}{
		"tenant-1":              {Pattern{Scope: "tenant-1"}, LevelScope, 4},
		"*":                     {Pattern{Scope: "*"}, LevelScope, 0},
		"s/*":                   {Pattern{Scope: "s", L1: "*"}, Level1, 4},
		"*/a":                   {Pattern{Scope: "*", L1: "a"}, Level1, 2},
		"s/a/b":                 {Pattern{"s", "a", "b"}, Level2, 7},
		"s/*/b":                 {Pattern{"s", "*", "b"}, Level2, 5},
		"*/*/*":                 {Pattern{"*", "*", "*"}, Level2, 0},
		"A_z.0-9":               {Pattern{Scope: "A_z.0-9"}, LevelScope, 4},
		strings.Repeat("a", 36): {Pattern{Scope: strings.Repeat("a", 36)}, LevelScope, 4},
	} {
		p, err := ParsePattern(text)
		require.NoError(t, err, text)
		require.Equal(t, want.pattern, p)
		require.Equal(t, want.level, p.level(), text)
		require.Equal(t, want.rank, p.rank(), text)
		require.Equal(t, text, p.String())
	}
}

func TestInvalidPatterns(t *testing.T) {
	for text, reason := range map[string]string{
		"":                      "empty",
		"/a":                    "empty",
		"a/":                    "empty",
		"a//b":                  "empty",
		"a/b/c/d":               "4 parts",
		"a b":                   "a character outside",
		"a*":                    "a character outside",
		"**":                    "a character outside",
		"ä":                     "a character outside",
		strings.Repeat("a", 37): "37 bytes",
	} {
		_, err := ParsePattern(text)
		require.ErrorContains(t, err, reason, text)
	}
}

func TestUnparsedPatternsAreChecked(t *testing.T) {
	require.NoError(t, Pattern{"s", "*", "b"}.Check())
	for _, p := range []Pattern{{}, {Scope: "s", L2: "b"}, {L1: "a"}, {Scope: "s/a"}, {Scope: "a b"}} {
		require.Error(t, p.Check(), "%#v", p)
	}
}

func TestLimitKeys(t *testing.T) {
	for text, want := range map[string]LimitKey{"foo": {L1: "foo"}, "foo/bar": {"foo", "bar"}} {
		key, err := ParseLimitKey(text)
		require.NoError(t, err)
		require.Equal(t, want, key)
		require.Equal(t, text, key.String())
	}
	for text, reason := range map[string]string{
		"": "empty", "/": "empty", "a/": "empty", "/a": "empty", "a/b/c": "more than two", "*": "character", "a/*": "character",
	} {
		_, err := ParseLimitKey(text)
		require.ErrorContains(t, err, reason, text)
	}
}

func TestScopes(t *testing.T) {
	require.NoError(t, CheckScope("tenant_1.prod-EU"))
	for _, text := range []string{"", "*", "a/b", "a b", "é", strings.Repeat("s", 37)} {
		require.Error(t, CheckScope(text), text)
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"a", "*", "a/b/c", "a/*/c", "//", "a/b/c/d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err == nil {
			require.Equal(t, text, p.String())
		}
		key, err := ParseLimitKey(text)
		if err == nil {
			require.Equal(t, text, key.String())
		}
	})
}

func TestOrderKeepsRulesOfAScopeTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q := drawPattern(t, "p"), drawPattern(t, "q")
		require.Equal(t, p.Compare(q), -q.Compare(p))
		require.Equal(t, p == q, p.Compare(q) == 0)
	})
}

var somePart = rapid.SampledFrom([]string{"*", "a", "b", "c"})

// drawPattern uses few different parts, so that patterns overlap.
func drawPattern(t *rapid.T, label string) Pattern {
	p := Pattern{Scope: somePart.Draw(t, label+" scope")}
	level := rapid.IntRange(0, 2).Draw(t, label+" level")
	if level >= 1 {
		p.L1 = somePart.Draw(t, label+" l1")
	}
	if level == 2 {
		p.L2 = somePart.Draw(t, label+" l2")
	}
	return p
}
