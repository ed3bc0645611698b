package term

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFitKeepsWhatATerminalShows(t *testing.T) {
	for name, tc := range map[string]struct {
		text          string
		rows, columns int
		want          string
	}{
		"all of it":           {"a\nb\nc\n", 3, 80, "a\nb\nc"},
		"the beginning":       {"a\nb\nc\nd\n", 3, 80, "a\nb\n… 2 more lines"},
		"lines that wrap":     {"1234567890\nb\nc\n", 3, 5, "1234567890\n… 2 more lines"},
		"a full line":         {"12345\nb\nc\n", 3, 5, "12345\nb\nc"},
		"escape sequences":    {"\x1b[1m12345\x1b[0m\nb\nc\n", 3, 5, "\x1b[1m12345\x1b[0m\nb\nc"},
		"wide characters":     {"世界\nb\n", 2, 3, "\n… 2 more lines"},
		"an empty line":       {"a\n\nc\nd", 3, 80, "a\n\n… 2 more lines"},
		"nothing that fits":   {"1234567890", 1, 5, "\n… 1 more lines"},
		"nothing at all":      {"", 3, 80, ""},
		"a line after a wrap": {"a\n1234567890\nc\nd", 4, 5, "a\n1234567890\n… 2 more lines"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, Fit(tc.text, tc.rows, tc.columns))
		})
	}
}

func TestSizeIsThatOfATerminal(t *testing.T) {
	_, _, known := Size(t.Output())
	require.False(t, known)
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	_, _, known = Size(file)
	require.False(t, known)
}
