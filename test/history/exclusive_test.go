package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckExclusive(t *testing.T) {
	in := func(nonce string) SectionEvent { return SectionEvent{nonce, Enter} }
	out := func(nonce string) SectionEvent { return SectionEvent{nonce, Leave} }
	sections := []Section{{"a", "b"}, {"c", "d"}}
	for _, c := range []struct {
		name      string
		events    []SectionEvent
		sections  []Section
		violation string
	}{
		{"sequential", []SectionEvent{in("a"), out("b"), in("c"), out("d")}, sections, ""},
		{"abandoned attempts", []SectionEvent{in("x"), in("a"), out("y"), out("b"), in("c"), out("z"), out("d")}, sections, ""},
		{"overlapping", []SectionEvent{in("a"), in("c"), out("b"), out("d")}, sections, "c entered while a was inside"},
		{"leave of another section", []SectionEvent{in("a"), out("d"), in("c"), out("b")}, sections, "d left"},
		{"one enter event for two sections", []SectionEvent{in("a"), out("b"), out("d")}, []Section{{"a", "b"}, {"a", "d"}}, "two sections"},
		{"a section without events", []SectionEvent{in("a"), out("b")}, sections, "only 2 were reported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckExclusive(c.events, c.sections)
			if c.violation == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.violation)
			}
		})
	}
}
