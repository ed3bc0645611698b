package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCheckExclusive(t *testing.T) {
	in := func(nonce string) Passage { return Passage{nonce, Enter} }
	out := func(nonce string) Passage { return Passage{nonce, Leave} }
	both := []Stay{{"a", "b"}, {"c", "d"}}
	for _, c := range []struct {
		name      string
		passages  []Passage
		stays     []Stay
		violation string
	}{
		{"one after the other", []Passage{in("a"), out("b"), in("c"), out("d")}, both, ""},
		{"attempts given up", []Passage{in("x"), in("a"), out("y"), out("b"), in("c"), out("z"), out("d")}, both, ""},
		{"both inside", []Passage{in("a"), in("c"), out("b"), out("d")}, both, "c entered while a was inside"},
		{"the other one leaves", []Passage{in("a"), out("d"), in("c"), out("b")}, both, "d left"},
		{"the same entrance for two", []Passage{in("a"), out("b"), out("d")}, []Stay{{"a", "b"}, {"a", "d"}}, "two invocations"},
		{"a result that never happened", []Passage{in("a"), out("b")}, both, "only 2 have happened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckExclusive(c.passages, c.stays)
			if c.violation == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.violation)
			}
		})
	}
}

func TestNapIsNotTooShort(t *testing.T) {
	nap := Nap{Asked: time.Second, Begin: epoch, End: epoch.Add(time.Second)}
	require.NoError(t, nap.Check())
	nap.End = nap.End.Add(-10 * time.Millisecond)
	require.ErrorContains(t, nap.Check(), "early")
}
