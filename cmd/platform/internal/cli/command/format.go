package command

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"platform/cmd/platform/internal/term"
	"platform/internal/ids"
)

// YesNo formats a boolean.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// OrDash returns a text, "-" if it is empty.
func OrDash(text string) string { return cmp.Or(text, "-") }

// Pairs prints a map, one name per line.
func Pairs(table map[string]string) string {
	lines := make([]string, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		lines = append(lines, term.Clean(name)+"="+term.Clean(table[name]))
	}
	return strings.Join(lines, "\n")
}

// RoughSize is a size in bytes with two or three digits.
func RoughSize(n int64) string {
	size, unit := float64(n), 0
	for ; size >= 1024 && unit < 4; unit++ {
		size /= 1024
	}
	digits := 0
	if unit > 0 && size < 10 {
		digits = 1
	}
	return strconv.FormatFloat(size, 'f', digits, 64) + " " + [...]string{"B", "KiB", "MiB", "GiB", "TiB"}[unit]
}

// NodeID returns the id of a node, "-" if there is none.
func NodeID(id ids.Node) string {
	if id == 0 {
		return "-"
	}
	return id.String()
}
