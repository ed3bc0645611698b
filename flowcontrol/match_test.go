package flowcontrol

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func bookOf(t require.TestingT, rules ...string) *Book {
	changes := make([]Change, 0, len(rules))
	for _, text := range rules {
		disabled := text[0] == '-'
		if disabled {
			text = text[1:]
		}
		changes = append(changes, Change{Pattern: pattern(t, text), Disabled: disabled})
	}
	b, _, err := (&Book{}).Put(changes, 1)
	require.NoError(t, err)
	return b
}

func TestTheMostExactRuleWins(t *testing.T) {
	for name, c := range map[string]struct {
		rules []string
		scope string
		key   LimitKey
		want  [Levels]string
	}{
		"nothing":                    {nil, "s", LimitKey{"a", "b"}, [Levels]string{}},
		"unscoped":                   {[]string{"*", "*/*", "*/*/*"}, "", LimitKey{}, [Levels]string{}},
		"any":                        {[]string{"*"}, "s", LimitKey{}, [Levels]string{"*", "", ""}},
		"exact before any":           {[]string{"*", "s"}, "s", LimitKey{}, [Levels]string{"s", "", ""}},
		"another":                    {[]string{"t"}, "s", LimitKey{}, [Levels]string{}},
		"disabled is absent":         {[]string{"*", "-s"}, "s", LimitKey{}, [Levels]string{"*", "", ""}},
		"levels of its own":          {[]string{"s"}, "s", LimitKey{"a", "b"}, [Levels]string{"s", "", ""}},
		"no level beyond the key":    {[]string{"*", "*/*", "*/*/*"}, "s", LimitKey{L1: "a"}, [Levels]string{"*", "*/*", ""}},
		"scope before what follows":  {[]string{"s/*", "*/a"}, "s", LimitKey{L1: "a"}, [Levels]string{"", "s/*", ""}},
		"first part before second":   {[]string{"*/a/*", "*/*/b"}, "s", LimitKey{"a", "b"}, [Levels]string{"", "", "*/a/*"}},
		"scope before both":          {[]string{"s/*/*", "*/a/b"}, "s", LimitKey{"a", "b"}, [Levels]string{"", "", "s/*/*"}},
		"all three":                  {[]string{"s", "s/a", "s/a/b", "*", "*/*"}, "s", LimitKey{"a", "b"}, [Levels]string{"s", "s/a", "s/a/b"}},
		"the same name at two parts": {[]string{"a/a"}, "a", LimitKey{"a", "a"}, [Levels]string{"", "a/a", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var got [Levels]string
			for level, rule := range NewMatcher(bookOf(t, c.rules...)).Match(c.scope, c.key) {
				if rule != nil {
					got[level] = rule.Pattern.String()
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// naive checks every rule.
func naive(b *Book, scope string, key LimitKey) (found Match) {
	fits := func(part, value string) bool { return part == "" || part == Any && value != "" || part == value }
	for i := range b.Rules {
		r := &b.Rules[i]
		if r.Disabled || !fits(r.Pattern.Scope, scope) || !fits(r.Pattern.L1, key.L1) || !fits(r.Pattern.L2, key.L2) {
			continue
		}
		if best := found[r.Pattern.level()]; best == nil || best.Pattern.rank() < r.Pattern.rank() {
			found[r.Pattern.level()] = r
		}
	}
	return found
}

func TestMatchingAgreesWithLookingAtEveryRule(t *testing.T) {
	values := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	rapid.Check(t, func(t *rapid.T) {
		changes := make([]Change, rapid.IntRange(0, 30).Draw(t, "rules"))
		for i := range changes {
			changes[i] = Change{Pattern: drawPattern(t, fmt.Sprint(i)), Disabled: rapid.IntRange(0, 4).Draw(t, "disabled") == 0}
		}
		book, _, err := (&Book{}).Put(changes, 1)
		require.NoError(t, err)
		scope, key := values.Draw(t, "scope"), LimitKey{}
		if rapid.Bool().Draw(t, "has l1") {
			key.L1 = values.Draw(t, "l1")
			if rapid.Bool().Draw(t, "has l2") {
				key.L2 = values.Draw(t, "l2")
			}
		}
		require.Equal(t, naive(book, scope, key), NewMatcher(book).Match(scope, key))
	})
}

func TestTheZeroMatcherHasNoRules(t *testing.T) {
	require.Equal(t, Match{}, new(Matcher).Match("s", LimitKey{"a", "b"}))
}

func BenchmarkMatch(b *testing.B) {
	changes := make([]Change, 0, MaxRules)
	for i := range MaxRules - 3 {
		changes = append(changes, Change{Pattern: Pattern{Scope: fmt.Sprintf("tenant-%d", i/3), L1: fmt.Sprintf("user-%d", i)}})
	}
	for _, text := range []string{"*", "*/*", "*/*/*"} {
		changes = append(changes, Change{Pattern: pattern(b, text)})
	}
	book, _, err := (&Book{}).Put(changes, 1)
	require.NoError(b, err)
	m := NewMatcher(book)
	b.ReportAllocs()
	for b.Loop() {
		if m.Match("tenant-77", LimitKey{"user-231", "x"})[Level1] == nil {
			b.Fatal("no rule")
		}
	}
}
