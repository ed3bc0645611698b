package metadata

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/flowcontrol"
	"platform/internal/feature"
)

// fullRules has all fields set.
func fullRules() []flowcontrol.Rule {
	return []flowcontrol.Rule{{
		Pattern:     flowcontrol.Pattern{Scope: "tenant-1", L1: "*", L2: "x"},
		Limits:      flowcontrol.Limits{Concurrency: 5, Rate: &flowcontrol.Rate{Count: 300, Period: time.Minute}, QueueLimit: ptr(uint64(0))},
		Description: "why", Disabled: true, Version: 7, ModifiedAt: goldenTime.UnixMilli(),
	}, {
		Pattern: flowcontrol.Pattern{Scope: "*"},
	}}
}

func fullPutRules() *putRules {
	r := fullRules()[0]
	return &putRules{changes: []flowcontrol.Change{{
		Pattern: r.Pattern, Limits: r.Limits, Description: r.Description, Disabled: true,
		Precondition: flowcontrol.Precondition{Kind: flowcontrol.Matches, Version: 300},
	}, {
		Pattern: flowcontrol.Pattern{Scope: "*"}, Precondition: flowcontrol.Precondition{Kind: flowcontrol.DoesNotExist},
	}}}
}

func fullDeleteRules() *deleteRules {
	return &deleteRules{[]flowcontrol.Removal{
		{Pattern: flowcontrol.Pattern{Scope: "s"}, Precondition: flowcontrol.Precondition{Kind: flowcontrol.Matches, Version: 3}},
		{Pattern: flowcontrol.Pattern{Scope: "*", L1: "a"}},
	}}
}

// drawRuleChange generates a command about few rules.
func drawRuleChange(t *rapid.T) command {
	drawPattern := func() flowcontrol.Pattern {
		text := rapid.SampledFrom([]string{"*", "a", "a.b", "a/b", "a-/b", "*/b"}).Draw(t, "pattern")
		p, err := flowcontrol.ParsePattern(text)
		require.NoError(t, err)
		return p
	}
	drawPrecondition := func() flowcontrol.Precondition {
		return flowcontrol.Precondition{
			Kind: flowcontrol.PreconditionKind(rapid.IntRange(0, 2).Draw(t, "precondition")), Version: rapid.Uint32Range(1, 5).Draw(t, "version"),
		}
	}
	count := rapid.IntRange(1, 3).Draw(t, "rules")
	if rapid.Bool().Draw(t, "delete") {
		cmd := &deleteRules{}
		for range count {
			cmd.removals = append(cmd.removals, flowcontrol.Removal{Pattern: drawPattern(), Precondition: drawPrecondition()})
		}
		return cmd
	}
	cmd := &putRules{}
	for range count {
		cmd.changes = append(cmd.changes, flowcontrol.Change{
			Pattern: drawPattern(), Limits: flowcontrol.Limits{Concurrency: rapid.Uint32Max(2).Draw(t, "limit")},
			Description: rapid.SampledFrom([]string{"", "d"}).Draw(t, "description"), Precondition: drawPrecondition(),
		})
	}
	return cmd
}

// The transcripts in testdata/rules are changes and the book after them.
func TestRuleBook(t *testing.T) {
	datadriven.Walk(t, "testdata/rules", func(t *testing.T, path string) {
		m := newMemStore()
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out, err := runRules(t, m, td)
			if err != nil {
				out = err.Error() + "\n"
			}
			book, _ := m.Rules()
			return out + describeBook(book)
		})
	})
}

// runRules makes the changes of the input, one per line: a pattern, then words such as
// limit=5 disabled if=3 if=new.
func runRules(t *testing.T, m *memStore, td *datadriven.TestData) (string, error) {
	var changes []flowcontrol.Change
	for line := range strings.Lines(td.Input) {
		words := strings.Fields(line)
		p, err := flowcontrol.ParsePattern(words[0])
		require.NoError(t, err)
		c := flowcontrol.Change{Pattern: p}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "limit":
				_, err = fmt.Sscan(value, &c.Limits.Concurrency)
			case "rate":
				var rate flowcontrol.Rate
				rate, err = flowcontrol.ParseRate(value)
				c.Limits.Rate = &rate
			case "disabled":
				c.Disabled = true
			case "description":
				c.Description = value
			case "if":
				if c.Precondition.Kind = flowcontrol.DoesNotExist; value != "new" {
					c.Precondition.Kind = flowcontrol.Matches
					_, err = fmt.Sscan(value, &c.Precondition.Version)
				}
			default:
				t.Fatalf("unknown word %s", word)
			}
			require.NoError(t, err)
		}
		changes = append(changes, c)
	}
	if td.Cmd == "delete" {
		var removals []flowcontrol.Removal
		for _, c := range changes {
			removals = append(removals, flowcontrol.Removal{Pattern: c.Pattern, Precondition: c.Precondition})
		}
		removed, err := m.DeleteRules(context.Background(), removals)
		return fmt.Sprintln("removed", removed), err
	}
	rules, err := m.PutRules(context.Background(), changes)
	var out strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&out, "put %s v%d\n", r.Pattern, r.Version)
	}
	return out.String(), err
}

func describeBook(b *flowcontrol.Book) string {
	var out strings.Builder
	fmt.Fprintf(&out, "book v%d\n", b.Version)
	for _, r := range b.Rules {
		fmt.Fprintf(&out, "%s v%d at %s", r.Pattern, r.Version, time.UnixMilli(r.ModifiedAt).UTC().Format("15:04:05"))
		if r.Limits.Concurrency != 0 {
			fmt.Fprintf(&out, " limit=%d", r.Limits.Concurrency)
		}
		if r.Limits.Rate != nil {
			fmt.Fprintf(&out, " rate=%s", r.Limits.Rate)
		}
		if r.Disabled {
			out.WriteString(" disabled")
		}
		if r.Description != "" {
			fmt.Fprintf(&out, " %q", r.Description)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func TestOnlyRuleChangesWakeRuleWaiters(t *testing.T) {
	m := newMemStore()
	pattern := flowcontrol.Pattern{Scope: "s"}
	put := func(limit uint32) {
		_, err := m.PutRules(t.Context(), []flowcontrol.Change{{Pattern: pattern, Limits: flowcontrol.Limits{Concurrency: limit}}})
		require.NoError(t, err)
	}
	silent := func(changed <-chan struct{}, what string) {
		select {
		case <-changed:
			t.Fatal(what)
		default:
		}
	}
	book, changed := m.Rules()
	require.Empty(t, book.Rules)
	_, moved := m.Layout()
	put(1)
	<-changed
	silent(moved, "a rule is not part of the layout")

	book, changed = m.Rules()
	require.EqualValues(t, 1, book.Find(pattern).Limits.Concurrency)
	put(1)
	silent(changed, "a change to the current content changes nothing")
	_, err := m.RegisterNode(t.Context(), Node{Name: "n"})
	require.NoError(t, err)
	silent(changed, "a node is not a rule")
	_, err = m.DeleteRules(t.Context(), []flowcontrol.Removal{{Pattern: pattern}})
	require.NoError(t, err)
	<-changed
}

func TestInvalidRulesAreRejected(t *testing.T) {
	m := newMemStore()
	pattern := flowcontrol.Pattern{Scope: "s"}
	for name, c := range map[string]flowcontrol.Change{
		"no pattern":     {},
		"odd pattern":    {Pattern: flowcontrol.Pattern{Scope: "a/b"}},
		"description":    {Pattern: pattern, Description: strings.Repeat("x", flowcontrol.MaxDescriptionBytes+1)},
		"rate of none":   {Pattern: pattern, Limits: flowcontrol.Limits{Rate: &flowcontrol.Rate{Period: time.Second}}},
		"rate for never": {Pattern: pattern, Limits: flowcontrol.Limits{Rate: &flowcontrol.Rate{Count: 1}}},
	} {
		_, err := m.PutRules(t.Context(), []flowcontrol.Change{c})
		require.ErrorAs(t, err, new(*InvalidError), name)
	}
	_, err := m.DeleteRules(t.Context(), []flowcontrol.Removal{{}})
	require.ErrorAs(t, err, new(*InvalidError))
	_, err = m.DeleteRules(t.Context(), make([]flowcontrol.Removal, flowcontrol.MaxRules+1))
	require.ErrorAs(t, err, new(*InvalidError))
	_, err = m.PutRules(t.Context(), make([]flowcontrol.Change, flowcontrol.MaxRules+1))
	require.Error(t, err)
	require.Empty(t, m.entries, "invalid rules must not reach the log")
}

func TestAFullRuleBookIsNotExceeded(t *testing.T) {
	m := newMemStore()
	changes := make([]flowcontrol.Change, flowcontrol.MaxRules)
	for i := range changes {
		changes[i].Pattern.Scope = fmt.Sprint("s", i)
	}
	_, err := m.PutRules(t.Context(), changes)
	require.NoError(t, err)
	_, err = m.PutRules(t.Context(), []flowcontrol.Change{{Pattern: flowcontrol.Pattern{Scope: "more"}}})
	require.ErrorIs(t, err, ErrTooManyRules)
	require.ErrorContains(t, err, "10001 rules")
	_, err = m.PutRules(t.Context(), changes[:3])
	require.NoError(t, err)
}

func TestRenewedRulesAreAboveLostVersions(t *testing.T) {
	m := atLevel4(t)
	pattern := flowcontrol.Pattern{Scope: "s"}
	put := func(limit uint32) {
		_, err := m.PutRules(t.Context(), []flowcontrol.Change{{Pattern: pattern, Limits: flowcontrol.Limits{Concurrency: limit}}})
		require.NoError(t, err)
	}
	put(1)
	put(2)
	before, changed := m.Rules()
	require.NoError(t, m.RenewRules(t.Context()))
	<-changed
	book, _ := m.Rules()
	require.Equal(t, before.Rules, book.Rules)
	require.Greater(t, book.Version, uint32(1_700_000_000))
	require.NoError(t, m.RenewRules(t.Context()))
	again, _ := m.Rules()
	require.Greater(t, again.Version, book.Version)
	put(3)
	last, _ := m.Rules()
	require.Equal(t, again.Version+1, last.Version)

	old := provisioned(t)
	book, _ = old.Rules()
	require.NoError(t, old.RenewRules(t.Context()))
	same, _ := old.Rules()
	require.Same(t, book, same, "older nodes could not read it")
	var rejected *feature.Error
	require.ErrorAs(t, old.mayPropose(&putRules{renew: true}), &rejected)
}
