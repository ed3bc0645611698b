package suggest

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordsAreReadBackByAShell(t *testing.T) {
	for _, text := range []string{
		"a", "Counter/ada/add", "inv_1abc", "a b", "", "it's", `a"b`, "$HOME", "`id`", "$(id)", "a;b", "a&b|c", "*", "~", "#x", "!x", `a\b`, "a\nb", "ä", "-x", "{a,b}", "<x>",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+Word(text)).Output() //nolint:gosec // the quoting is under test
		if text == "-x" {
			out, err = exec.Command("sh", "-c", "printf %s -- "+Word(text)).Output() //nolint:gosec // as above
			require.NoError(t, err)
			require.Contains(t, string(out), text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, text, string(out))
	}
	require.Equal(t, "Counter/ada/add", Word("Counter/ada/add"), "without quotes where none are needed")
}
