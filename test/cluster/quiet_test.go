package cluster

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	alarming = regexp.MustCompile(`\b(WARN|ERROR)\b`)
	dumped   = regexp.MustCompile(`&\{|map\[|%!|="?\{|="?\[[a-z]`) // Go values instead of text
)

// TestNormalOperationWarnsOfNothing starts a cluster whose nodes join one another, restarts
// each node, and looks at what they log.
func TestNormalOperationWarnsOfNothing(t *testing.T) {
	b := newTestbed(t, testbedOptions{})
	require.NoError(t, b.AwaitReplicated(t.Context(), recoveryTimeout))
	for i := range b.Nodes {
		require.NoError(t, b.restartGracefully(t.Context(), i))
		require.NoError(t, b.AwaitReplicated(t.Context(), recoveryTimeout))
	}
	for _, n := range b.Nodes {
		log := n.Process.LogTail(100_000)
		require.Contains(t, log, "server ready")
		for line := range strings.Lines(log) {
			require.NotRegexp(t, alarming, line, n.Name())
			require.NotRegexp(t, dumped, line, n.Name())
		}
	}
}
