package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// epoch is the start of the histories of these tests.
var epoch = time.Unix(1_700_000_000, 0)

// span is an operation between two seconds of a history.
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
		{"sequential", []Add{add("a", 0, 1, 0), add("b", 2, 3, 1)}, ledger("a", "b"), ""},
		{"concurrent, in any order", []Add{add("a", 0, 3, 1), add("b", 1, 2, 0)}, ledger("b", "a"), ""},
		{"unknown and absent", []Add{unknown("a", 0, 1), add("b", 2, 3, 0)}, ledger("b"), ""},
		{"unknown and delayed", []Add{unknown("a", 0, 1), add("b", 2, 3, 0)}, ledger("b", "a"), ""},
		{"asynchronous and delayed", []Add{{ID: "a", Span: span(0, 1), Position: -1, Async: true}, add("b", 2, 3, 0)}, ledger("b", "a"), ""},
		{"acknowledged and missing", []Add{add("a", 0, 1, 0), add("b", 2, 3, 0)}, ledger("b"), "lost: a"},
		{"acknowledged twice", []Add{add("a", 0, 1, 0)}, ledger("a", "a"), "duplicate: a"},
		{"unknown twice", []Add{unknown("a", 0, 1)}, ledger("a", "a"), "duplicate: a"},
		{"never added", []Add{add("a", 0, 1, 0)}, ledger("a", "b"), "phantom: entry 1, b"},
		{"rejected and added", []Add{{ID: "a", Span: span(0, 1), Outcome: Failed, Position: -1}}, ledger("a"), "phantom: a was rejected"},
		{"position differs from the response", []Add{add("a", 0, 3, 0), add("b", 1, 2, 0)}, ledger("b", "a"), "position: a was acknowledged as entry 0 and is entry 1"},
		{"against the real-time order", []Add{{ID: "a", Span: span(0, 1), Position: -1}, add("b", 2, 3, 0)}, ledger("b", "a"), "out of order: a ended before b"},
		{"too early", []Add{{ID: "a", Span: span(0, 0), Position: -1, Async: true, Delay: time.Second}}, ledger("a"), "early: a was added 998ms too early"},
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
