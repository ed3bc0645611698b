package term

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table writes rows under a header, each line indented. Cells may have several lines.
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
	t.SuppressTrailingSpaces()
	for line := range strings.Lines(t.Render() + "\n") {
		p.Printf("%s%s", indent, line)
	}
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
