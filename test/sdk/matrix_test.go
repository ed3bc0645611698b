package sdk

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// matrix counts passed cases by theme and language.
type matrix struct {
	mu       sync.Mutex // covers all below; cases run in parallel
	themes   []string   // in order of appearance
	langs    []string
	cells    map[[2]string]*cell
	excluded []string
}

// cell is the result of one theme for one language.
type cell struct {
	passed, failed int
	spent          time.Duration // by the slowest case
	excluded       bool
}

func newMatrix() *matrix { return &matrix{cells: map[[2]string]*cell{}} }

// cell returns the cell of a theme and a language; the caller holds the lock.
func (m *matrix) cell(lang, theme string) *cell {
	if !slices.Contains(m.themes, theme) {
		m.themes = append(m.themes, theme)
	}
	if !slices.Contains(m.langs, lang) {
		m.langs = append(m.langs, lang)
	}
	at := [2]string{theme, lang}
	if m.cells[at] == nil {
		m.cells[at] = &cell{}
	}
	return m.cells[at]
}

// record records the case t when it ends.
func (m *matrix) record(t *testing.T, lang, theme string) {
	begin := time.Now()
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		c := m.cell(lang, theme)
		c.spent = max(c.spent, time.Since(begin))
		if t.Failed() {
			c.failed++
		} else {
			c.passed++
		}
	})
}

// exclude records why a theme does not apply to a language.
func (m *matrix) exclude(lang, theme, reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cell(lang, theme).excluded = true
	m.excluded = append(m.excluded, fmt.Sprintf("excluded: %s, %s: the SDK %s", lang, theme, reason))
}

// String returns a table of passed and failed cases and the time of the slowest.
func (m *matrix) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "theme\t"+strings.Join(m.langs, "\t"))
	for _, theme := range m.themes {
		row := []string{theme}
		for _, lang := range m.langs {
			row = append(row, m.cells[[2]string{theme, lang}].String())
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	return text.String() + strings.Join(m.excluded, "\n")
}

func (c *cell) String() string {
	switch {
	case c == nil:
		return ""
	case c.excluded:
		return "excluded"
	case c.failed > 0:
		return fmt.Sprintf("%d FAILED of %d", c.failed, c.failed+c.passed)
	}
	return fmt.Sprintf("%d %.1fs", c.passed, c.spent.Seconds())
}
