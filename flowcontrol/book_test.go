package flowcontrol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func pattern(t require.TestingT, text string) Pattern {
	p, err := ParsePattern(text)
	require.NoError(t, err)
	return p
}

func limited(n uint32) Limits { return Limits{Concurrency: n} }

// must makes changes that must succeed.
func must(t *testing.T, b *Book, at int64, changes ...Change) *Book {
	t.Helper()
	next, rules, err := b.Put(changes, at)
	require.NoError(t, err)
	require.Len(t, rules, len(changes))
	for i, r := range rules {
		require.Equal(t, changes[i].Pattern, r.Pattern)
	}
	return next
}

func TestVersions(t *testing.T) {
	a := pattern(t, "a")
	empty := &Book{}
	b1 := must(t, empty, 100, Change{Pattern: a, Limits: limited(5)}, Change{Pattern: pattern(t, "*"), Limits: limited(9)})
	require.Equal(t, &Book{Version: 1, Rules: []Rule{
		{Pattern: pattern(t, "*"), Limits: limited(9), Version: 1, ModifiedAt: 100},
		{Pattern: a, Limits: limited(5), Version: 1, ModifiedAt: 100},
	}}, b1)
	require.Equal(t, &Book{}, empty, "books are immutable")

	b2 := must(t, b1, 200, Change{Pattern: a, Limits: limited(6)})
	require.Equal(t, Rule{Pattern: a, Limits: limited(6), Version: 2, ModifiedAt: 200}, *b2.Find(a))
	require.EqualValues(t, 1, b1.Find(a).Version)

	same := must(t, b2, 300, Change{Pattern: a, Limits: limited(6)})
	require.Equal(t, b2, same, "a change to the current content changes nothing")

	text := must(t, b2, 400, Change{Pattern: a, Limits: limited(6), Description: "why"})
	require.Equal(t, Rule{Pattern: a, Limits: limited(6), Description: "why", Version: 2, ModifiedAt: 400}, *text.Find(a))
	require.EqualValues(t, 2, text.Version, "a description affects no invocation")

	off := must(t, text, 500, Change{Pattern: a, Limits: limited(6), Disabled: true})
	require.Equal(t, Rule{Pattern: a, Limits: limited(6), Disabled: true, Version: 3, ModifiedAt: 500}, *off.Find(a))

	gone, removed, err := off.Delete([]Removal{{Pattern: a}, {Pattern: pattern(t, "unknown")}, {Pattern: a}})
	require.NoError(t, err)
	require.Equal(t, []Pattern{a}, removed)
	require.EqualValues(t, 4, gone.Version)
	require.Nil(t, gone.Find(a))

	again := must(t, gone, 600, Change{Pattern: a})
	require.EqualValues(t, 5, again.Find(a).Version, "a version is never reused")

	nothing, removed, err := again.Delete([]Removal{{Pattern: pattern(t, "unknown")}})
	require.NoError(t, err)
	require.Empty(t, removed)
	require.Same(t, again, nothing)
}

func TestAPatternTwiceInABatch(t *testing.T) {
	a := pattern(t, "a")
	b, rules, err := (&Book{}).Put([]Change{
		{Pattern: a, Limits: limited(1), Precondition: Precondition{Kind: DoesNotExist}},
		{Pattern: a, Limits: limited(2), Precondition: Precondition{Kind: Matches, Version: 1}},
	}, 7)
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 2}, []uint32{rules[0].Version, rules[1].Version})
	require.Equal(t, &Book{Version: 2, Rules: []Rule{{Pattern: a, Limits: limited(2), Version: 2, ModifiedAt: 7}}}, b)
}

func TestPreconditions(t *testing.T) {
	a, n := pattern(t, "a"), pattern(t, "new")
	book := must(t, &Book{Version: 6}, 1, Change{Pattern: a, Limits: limited(5)})
	for name, c := range map[string]struct {
		pattern  Pattern
		pre      Precondition
		rejected string
	}{
		"none, there":               {a, Precondition{}, ""},
		"none, absent":              {n, Precondition{}, ""},
		"matches":                   {a, Precondition{Matches, 7}, ""},
		"matches another":           {a, Precondition{Matches, 6}, "rule 'a' was expected at version 6, but it is at version 7"},
		"matches, absent":           {n, Precondition{Matches, 7}, "rule 'new' was expected at version 7, but there is no such rule"},
		"matches 0, absent":         {n, Precondition{Matches, 0}, "rule 'new' was expected at version 0, but there is no such rule"},
		"does not exist":            {n, Precondition{Kind: DoesNotExist}, ""},
		"does not exist, but there": {a, Precondition{Kind: DoesNotExist}, "rule 'a' was expected not to exist, but it is at version 7"},
	} {
		t.Run(name, func(t *testing.T) {
			other := Change{Pattern: pattern(t, "other"), Limits: limited(1)}
			next, _, err := book.Put([]Change{other, {Pattern: c.pattern, Limits: limited(1), Precondition: c.pre}}, 2)
			left, _, deleteErr := book.Delete([]Removal{{Pattern: other.Pattern}, {Pattern: c.pattern, Precondition: c.pre}})
			if c.rejected == "" {
				require.NoError(t, err)
				require.NoError(t, deleteErr)
				require.NotNil(t, next.Find(other.Pattern))
				return
			}
			var rejection *PreconditionError
			require.ErrorAs(t, err, &rejection)
			require.EqualError(t, err, c.rejected)
			require.Same(t, book, next, "a batch is atomic")
			require.EqualError(t, deleteErr, c.rejected)
			require.Same(t, book, left)
		})
	}
}

func TestBooksAreBounded(t *testing.T) {
	changes := make([]Change, 0, MaxRules)
	for i := range MaxRules {
		changes = append(changes, Change{Pattern: Pattern{Scope: fmt.Sprintf("s%d", i*7919%MaxRules)}, Limits: limited(1)})
	}
	full := must(t, &Book{}, 1, changes...)
	require.Len(t, full.Rules, MaxRules)
	require.True(t, slices.IsSortedFunc(full.Rules, func(a, b Rule) int { return a.Pattern.Compare(b.Pattern) }))

	next, _, err := full.Put([]Change{{Pattern: Pattern{Scope: "one-more"}}}, 2)
	var rejection *FullError
	require.ErrorAs(t, err, &rejection)
	require.Equal(t, MaxRules+1, rejection.Rules)
	require.Same(t, full, next)
	must(t, full, 2, Change{Pattern: Pattern{Scope: "s1"}, Limits: limited(2)})

	_, _, err = (&Book{}).Put(append(changes, Change{}), 1)
	require.ErrorAs(t, err, &rejection)
}

// The model keeps patterns and versions in a map.
func TestBooksAgreeWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		book, twin, used := &Book{}, map[Pattern]Rule{}, map[Pattern]uint32{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				c := Change{Pattern: drawPattern(t, "pattern"), Limits: limited(rapid.Uint32Range(0, 3).Draw(t, "limit"))}
				old, existed := twin[c.Pattern]
				before := book.Version
				next, rules, err := book.Put([]Change{c}, 1)
				require.NoError(t, err)
				book, twin[c.Pattern] = next, rules[0]
				switch {
				case !existed:
					require.Greater(t, rules[0].Version, used[c.Pattern])
					require.Equal(t, before+1, rules[0].Version)
				case old.Limits == c.Limits:
					require.Equal(t, old, rules[0])
					require.Equal(t, before, book.Version)
				default:
					require.Equal(t, old.Version+1, rules[0].Version)
					require.Equal(t, before+1, book.Version)
				}
				used[c.Pattern] = rules[0].Version
			},
			"delete": func(t *rapid.T) {
				p := drawPattern(t, "pattern")
				_, existed := twin[p]
				next, removed, err := book.Delete([]Removal{{Pattern: p}})
				require.NoError(t, err)
				require.Equal(t, existed, len(removed) == 1)
				delete(twin, p)
				book = next
			},
			"": func(t *rapid.T) {
				require.Len(t, book.Rules, len(twin))
				for _, r := range book.Rules {
					require.Equal(t, twin[r.Pattern], r)
					require.LessOrEqual(t, r.Version, book.Version)
				}
				require.True(t, slices.IsSortedFunc(book.Rules, func(a, b Rule) int { return a.Pattern.Compare(b.Pattern) }))
			},
		})
	})
}

func TestRulesInEffect(t *testing.T) {
	book := must(t, &Book{}, 7,
		Change{Pattern: pattern(t, "a"), Limits: limited(1), Description: "why"},
		Change{Pattern: pattern(t, "b"), Limits: limited(2), Disabled: true})
	require.Equal(t, &Book{Version: 1, Rules: []Rule{{Pattern: pattern(t, "a"), Limits: limited(1), Version: 1, ModifiedAt: 7}}}, book.Effective())
	require.Equal(t, "why", book.Find(pattern(t, "a")).Description)
}
