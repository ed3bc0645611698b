package term

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/internal/units"
)

func TestDuration(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0ms":      400 * time.Microsecond,
		"15ms":     15*time.Millisecond + 900*time.Microsecond,
		"1s 250ms": 1250 * time.Millisecond,
		"1m 1s":    61*time.Second + 999*time.Millisecond,
		"59m 59s":  time.Hour - time.Millisecond,
		"2h 3m":    2*time.Hour + 3*time.Minute + 59*time.Second,
		"9d 1h":    9*units.Day + time.Hour + 59*time.Minute,
	} {
		require.Equal(t, want, Duration(d))
	}
}

func TestCleanRemovesControlCharacters(t *testing.T) {
	require.Equal(t, "a[31mb\n\tc", Clean("a\x1b[31mb\n\tc\r\x00\u009b"))
}

func TestColourFollowsTheEnvironment(t *testing.T) {
	env := func(pairs map[string]string) func(string) string {
		return func(name string) string { return pairs[name] }
	}
	var out bytes.Buffer
	require.False(t, wantsColour(&out, env(nil)))
	require.True(t, wantsColour(&out, env(map[string]string{"CLICOLOR_FORCE": "1"})))
	require.False(t, wantsColour(&out, env(map[string]string{"CLICOLOR_FORCE": "0"})))
	require.False(t, wantsColour(&out, env(map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"})))
}

func TestFieldsAlignAndIndentFurtherLines(t *testing.T) {
	var out bytes.Buffer
	p := New(&out, func(string) string { return "" }, false, Human)
	p.Fields("  ", Field{"Name", "a\nb"}, Field{"Left out", ""}, Field{"Longer", "c"})
	require.Equal(t, "  Name:    a\n           b\n  Longer:  c\n", out.String())
}

func TestWithoutATerminalNothingIsConfirmed(t *testing.T) {
	var out bytes.Buffer
	require.ErrorIs(t, Confirm(bytes.NewBufferString("y\n"), &out, "Sure?", false), ErrAborted)
	require.NoError(t, Confirm(bytes.NewBufferString(""), &out, "Sure?", true))
}
