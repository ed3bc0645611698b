package term

import (
	"fmt"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/sys/unix"
)

// Size returns the size of a terminal in characters, if the stream is one and its size is known.
func Size(stream any) (rows, columns int, known bool) {
	file, ok := stream.(*os.File)
	if !ok {
		return 0, 0, false
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 || size.Col == 0 {
		return 0, 0, false
	}
	return int(size.Row), int(size.Col), true
}

// Fit returns the beginning of a text that a terminal shows without scrolling; the last line says how
// many lines were left out.
func Fit(content string, rows, columns int) string {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	used, fitting := 0, 0 // fitting: lines that leave a row for the note
	for i, line := range lines {
		used += max(1, (text.StringWidthWithoutEscSequences(line)+columns-1)/columns)
		if used > rows {
			return fmt.Sprintf("%s\n… %d more lines", strings.Join(lines[:fitting], "\n"), len(lines)-fitting)
		}
		if used < rows {
			fitting = i + 1
		}
	}
	return strings.Join(lines, "\n")
}
