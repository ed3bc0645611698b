package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// epoch is when the histories of these tests begin.
var epoch = time.Unix(1_700_000_000, 0)

// span is an operation from one second of a history to another.
func span(from, to int) Span {
	return Span{Start: epoch.Add(time.Duration(from) * time.Second), End: epoch.Add(time.Duration(to) * time.Second)}
}

func TestCheckLedger(t *testing.T) {
	add := func(id string, from, to, position int) Add {
		return Add{ID: id, Span: span(from, to), Position: position}
	}
	unknown := func(id string, from, to int) Add {
		return Add{ID: id, Span: span(from, to), Position: -1, Outcome: Unknown}
	}
	ledger := func(ids ...string) (entries []Entry) {
		for i, id := range ids {
			entries = append(entries, Entry{ID: id, At: epoch.Add(time.Duration(i) * time.Second)})
		}
		return entries
	}
	for _, c := range []struct {
		name      string
		adds      []Add
		entries   []Entry
		violation string
	}{
		{"one after the other", []Add{add("a", 0, 1, 0), add("b", 2, 3, 1)}, ledger("a", "b"), ""},
		{"at the same time, in any order", []Add{add("a", 0, 3, 1), add("b", 1, 2, 0)}, ledger("b", "a"), ""},
		{"unknown and absent", []Add{unknown("a", 0, 1), add("b", 2, 3, 0)}, ledger("b"), ""},
		{"unknown and late", []Add{unknown("a", 0, 1), add("b", 2, 3, 0)}, ledger("b", "a"), ""},
		{"sent and late", []Add{{ID: "a", Span: span(0, 1), Position: -1, Late: true}, add("b", 2, 3, 0)}, ledger("b", "a"), ""},
		{"acknowledged and gone", []Add{add("a", 0, 1, 0), add("b", 2, 3, 0)}, ledger("b"), "lost: a"},
		{"acknowledged twice", []Add{add("a", 0, 1, 0)}, ledger("a", "a"), "doubled: a"},
		{"unknown twice", []Add{unknown("a", 0, 1)}, ledger("a", "a"), "doubled: a"},
		{"out of nowhere", []Add{add("a", 0, 1, 0)}, ledger("a", "b"), "phantom: entry 1, b"},
		{"refused and done", []Add{{ID: "a", Span: span(0, 1), Outcome: Failed, Position: -1}}, ledger("a"), "phantom: a was refused"},
		{"another position than answered", []Add{add("a", 0, 3, 0), add("b", 1, 2, 0)}, ledger("b", "a"), "changed: a was answered position 0 and is entry 1"},
		{"against the order", []Add{{ID: "a", Span: span(0, 1), Position: -1}, add("b", 2, 3, 0)}, ledger("b", "a"), "disorder: a ended before b"},
		{"before its time", []Add{{ID: "a", Span: span(0, 0), Position: -1, Late: true, Delay: time.Second}}, ledger("a"), "early: a came 998ms before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckLedger(c.adds, c.entries)
			if c.violation == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.violation)
			}
		})
	}
}
