package cluster

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	alarming = regexp.MustCompile(`\b(WARN|ERROR)\b`)
	// delayed are warnings that a node delays the others, even if the machine is overloaded.
	delayed = regexp.MustCompile(`heartbeat timeout reached|failed to contact quorum|leader is silent|state=dead|` +
		`storage operation is slow|writes stalled by the disk|process was paused|could not transfer leadership|` +
		`leadership transfer failed|requests aborted at the end|could not register the node|has not applied a change|` +
		`could not change the cluster|differs from the partition table`)
	dumped = regexp.MustCompile(`&\{|map\[|%!|="?\{|="?\[[a-z]`) // Go values instead of text
)

// TestNormalOperationWarnsOfNothing starts a cluster of several nodes, restarts each
// node, and checks their logs. The short form tolerates warnings of delays.
func TestNormalOperationWarnsOfNothing(t *testing.T) {
	b := newTestbed(t, testbedOptions{})
	require.NoError(t, b.AwaitReplicated(t.Context(), recoveryTimeout))
	for i := range b.Nodes {
		require.NoError(t, b.restartGracefully(t.Context(), i))
		require.NoError(t, b.AwaitReplicated(t.Context(), recoveryTimeout))
	}
	strict := os.Getenv("CLUSTER_ROLLS") != ""
	for _, n := range b.Nodes {
		log := n.Process.LogTail(100_000)
		require.Contains(t, log, "server ready")
		for line := range strings.Lines(log) {
			if strings.Contains(line, "security.mode is open") || strings.Contains(line, "free disk space is low") {
				continue // the tests request that, and share the disk of the machine
			}
			if strict || !delayed.MatchString(line) {
				require.NotRegexp(t, alarming, line, n.Name())
			}
			require.NotRegexp(t, dumped, line, n.Name())
		}
	}
}
