package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

const (
	maxDetailed = 12 // failures whose reasons are shown; others are only named
	maxLines    = 12 // of the reasons of a failure
	maxMessage  = 3  // lines of a log message in the reasons, which may be the log of a process
)

var (
	// framing is what the testing package writes about the progress of tests.
	framing = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME|ATTR) |--- (FAIL|PASS|SKIP): |(PASS|FAIL)\s|exit status )`)
	// logged is the first line of what a test logs, also when it fails.
	logged = regexp.MustCompile(`^\s+[\w.-]+\.go:\d+: `)
	// crash is the first line of what the Go runtime and the leak check write.
	crash = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|goleak: |SIGQUIT: )`)
)

// summarize writes the names of the failed tests and why they failed. It leaves out tests that failed
// because of a subtest or ended with their process.
func summarize(failures []failure, out io.Writer) {
	if len(failures) == 0 {
		return
	}
	failures = slices.DeleteFunc(slices.Clone(failures), func(f failure) bool {
		return slices.ContainsFunc(failures, func(cause failure) bool { return cause.explains(f) })
	})
	_, _ = fmt.Fprintf(out, "\nFailed: %d\n", len(failures))
	for i, f := range failures {
		name := f.Package
		if f.Test != "" {
			name += " " + f.Test
		}
		if f.Unfinished {
			name += " (did not end)"
		}
		_, _ = fmt.Fprintln(out, name)
		if i >= maxDetailed {
			continue
		}
		for _, line := range reasons(f.Output) {
			_, _ = fmt.Fprintln(out, "    "+strings.TrimPrefix(line, "    "))
		}
	}
}

// explains reports whether f is the cause of another failure, which has nothing to add.
func (f failure) explains(other failure) bool {
	if f.Package != other.Package || f.Test == other.Test {
		return false
	}
	subtest := strings.HasPrefix(f.Test, other.Test+"/") && len(reasons(other.Output)) == 0
	return subtest || other.Unfinished && f.crashed() && !other.crashed()
}

func (f failure) crashed() bool {
	return slices.ContainsFunc(f.Output, crash.MatchString)
}

// reasons returns the lines of a failed test that say why it failed: a crash or failed assertions,
// otherwise the first and last lines of what it logged or printed.
func reasons(output []string) []string {
	lines := slices.DeleteFunc(strings.Split(strings.Join(output, ""), "\n"), func(line string) bool {
		return strings.TrimSpace(line) == "" || framing.MatchString(line)
	})
	if i := slices.IndexFunc(lines, crash.MatchString); i >= 0 {
		return lines[i:min(len(lines), i+maxLines)]
	}
	var assertions, messages []string
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && strings.HasPrefix(lines[end], "        ") && !logged.MatchString(lines[end]) {
			end++
		}
		block := lines[i:end]
		i = end
		if short, ok := assertion(block); ok {
			assertions = append(assertions, short...)
		} else if logged.MatchString(block[0]) {
			messages = append(messages, block[:min(len(block), maxMessage)]...)
		}
	}
	switch {
	case len(assertions) > 0:
		return assertions[:min(len(assertions), maxLines)]
	case len(messages) > 0:
		lines = messages
	}
	return ends(lines, maxLines/2, maxLines/2)
}

// ends returns the first and the last lines.
func ends(lines []string, first, last int) []string {
	if len(lines) <= first+last {
		return lines
	}
	left := fmt.Sprintf("... %d lines ...", len(lines)-first-last)
	return slices.Concat(lines[:first], []string{left}, lines[len(lines)-last:])
}

// assertion shortens the report of a failed testify assertion to its place, the error and the message.
func assertion(block []string) (short []string, ok bool) {
	kept := false
	for i, line := range block {
		field, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch field {
		case "Error Trace":
			ok, kept = true, false
			continue
		case "Error", "Messages":
			kept = true
		case "Diff", "Test":
			kept = false
		}
		if i == 0 || kept && field != "" {
			short = append(short, strings.TrimRight(line, " "))
		}
	}
	return short, ok
}
