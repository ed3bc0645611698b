package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Printer writes to one output.
type Printer struct {
	out     io.Writer
	colour  bool
	borders bool
	times   TimeFormat
	columns int // of the terminal, 0 if it is none
}

// New returns a printer. Borders draws tables with borders.
func New(out io.Writer, getenv func(string) string, borders bool, times TimeFormat) *Printer {
	p := &Printer{out: out, colour: wantsColour(out, getenv), borders: borders, times: times}
	if IsTerminal(out) {
		_, p.columns, _ = Size(out)
	}
	return p
}

// To returns a printer with the same style that writes to another output.
func (p *Printer) To(out io.Writer) *Printer {
	other := *p
	other.out = out
	return &other
}

// wantsColour decides by NO_COLOR, CLICOLOR and CLICOLOR_FORCE, then by the type of output.
func wantsColour(out io.Writer, getenv func(string) string) bool {
	switch {
	case getenv("NO_COLOR") != "":
		return false
	case getenv("CLICOLOR_FORCE") != "" && getenv("CLICOLOR_FORCE") != "0":
		return true
	case getenv("CLICOLOR") == "0" || getenv("TERM") == "dumb":
		return false
	}
	return IsTerminal(out)
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// Printf writes formatted text.
func (p *Printer) Printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

// Println writes a line.
func (p *Printer) Println(words ...any) { fmt.Fprintln(p.out, words...) }

// Bold emphasises a word.
func (p *Printer) Bold(text string) string { return p.style("1", text) }

// Dim de-emphasises a word.
func (p *Printer) Dim(text string) string { return p.style("2", text) }

// Red is for failures.
func (p *Printer) Red(text string) string { return p.style("31", text) }

// Green is for success.
func (p *Printer) Green(text string) string { return p.style("32", text) }

// Yellow is for what needs attention.
func (p *Printer) Yellow(text string) string { return p.style("33", text) }

// Blue is for operations in progress.
func (p *Printer) Blue(text string) string { return p.style("34", text) }

func (p *Printer) style(code, text string) string {
	if !p.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Heading writes an underlined heading.
func (p *Printer) Heading(text string) {
	p.Printf("%s\n%s\n", p.Bold(text), p.Dim(strings.Repeat("―", utf8.RuneCountInString(text))))
}

// Field is one line of a block.
type Field struct{ Name, Value string }

// Fields writes a block of names and aligned values. It omits fields without a value and
// indents further lines of a value.
func (p *Printer) Fields(indent string, fields ...Field) {
	width := 0
	for _, f := range fields {
		if f.Value != "" {
			width = max(width, utf8.RuneCountInString(f.Name)+1)
		}
	}
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(f.Name)-1)
		value := strings.ReplaceAll(strings.TrimRight(f.Value, "\n"), "\n", "\n"+indent+strings.Repeat(" ", width+2))
		p.Printf("%s%s%s  %s\n", indent, p.Dim(f.Name+":"), pad, value)
	}
}

// Box writes lines within a frame, for important warnings.
func (p *Printer) Box(lines ...string) {
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line))
	}
	rule := strings.Repeat("─", width+2)
	p.Println(p.Yellow("╭" + rule + "╮"))
	for _, line := range lines {
		p.Println(p.Yellow("│") + " " + line + strings.Repeat(" ", width-utf8.RuneCountInString(line)) + " " + p.Yellow("│"))
	}
	p.Println(p.Yellow("╰" + rule + "╯"))
}

// Clean removes control characters other than line ends and tabs, and those that reverse the order
// of others, from external text, so that it cannot control the terminal.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, text)
}
