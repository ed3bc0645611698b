package term

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrAborted means that the user did not confirm.
var ErrAborted = errors.New("user aborted")

// Confirm prompts for a confirmation and returns nil for yes. With yes set it confirms
// without input. Without a terminal the answer is no.
func Confirm(in io.Reader, out io.Writer, question string, yes bool) error {
	fmt.Fprintf(out, "%s [y/N] ", question)
	if yes {
		fmt.Fprintln(out, "yes (--yes)")
		return nil
	}
	if !IsTerminal(in) {
		fmt.Fprintln(out, "no (not a terminal; confirm with --yes)")
		return ErrAborted
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return ErrAborted
}
