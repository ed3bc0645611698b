package term

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table writes rows under a header, each line indented. Cells may have several lines. In a terminal, long
// cells are wrapped if the table is wider.
func (p *Printer) Table(indent string, header []string, rows [][]string) {
	t := table.NewWriter()
	t.SetStyle(p.tableStyle())
	t.AppendHeader(p.headerRow(header))
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.AppendRow(cells)
	}
	t.SetColumnConfigs(p.columnConfigs(p.columns-len(indent), header, rows))
	t.SuppressTrailingSpaces()
	for line := range strings.Lines(t.Render() + "\n") {
		p.Printf("%s%s", indent, line)
	}
}

// wrapFrom is the width up to which cells are not wrapped: that of an ID of an invocation, which would
// be difficult to copy.
const wrapFrom = 38

// columnConfigs wraps the widest columns of a table until it is at most as wide as given, if possible.
func (p *Printer) columnConfigs(width int, header []string, rows [][]string) []table.ColumnConfig {
	if p.columns == 0 {
		return nil
	}
	const separator = 2
	widths := make([]int, len(header))
	total := -separator
	for i, name := range header {
		widths[i] = text.LongestLineLen(name)
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], text.LongestLineLen(row[i]))
			}
		}
		total += widths[i] + separator
	}
	var configs []table.ColumnConfig
	for total > width {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= wrapFrom {
			break
		}
		narrower := max(wrapFrom, widths[widest]-(total-width))
		total -= widths[widest] - narrower
		widths[widest] = narrower
		configs = append(configs, table.ColumnConfig{Number: widest + 1, WidthMax: narrower, WidthMaxEnforcer: wrapLines})
	}
	return configs
}

// wrapLines wraps each line of a cell at spaces, and in words that are longer than the width.
func wrapLines(cell string, width int) string {
	lines := strings.Split(cell, "\n")
	for i, line := range lines {
		lines[i] = text.WrapSoft(line, width)
	}
	return strings.Join(lines, "\n")
}

func (p *Printer) headerRow(header []string) table.Row {
	row := make(table.Row, len(header))
	for i, name := range header {
		row[i] = p.Bold(name)
	}
	return row
}

func (p *Printer) tableStyle() table.Style {
	style := table.StyleLight
	if !p.borders {
		style = table.StyleDefault
		style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
		style.Options = table.OptionsNoBordersAndSeparators
	}
	style.Format.Header = text.FormatDefault
	return style
}
