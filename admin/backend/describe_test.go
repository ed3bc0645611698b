package backend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/attempts"
	"platform/partition/machine"
)

// An invocation is pinned to a deployment when its first step is stored; those that fail before are called at one as well.
func TestTheDeploymentOfTheLatestAttemptIsNamed(t *testing.T) {
	out := describe(partition.Record{
		Invocation: &machine.Invocation{Status: machine.Invoked},
		Attempts:   &attempts.Status{Deployment: "dp_1x", Server: "sdk/1"},
	})
	require.Empty(t, out.PinnedDeploymentID)
	require.Equal(t, ids.Deployment("dp_1x"), out.LastAttemptDeployment)
	require.Equal(t, "sdk/1", out.LastAttemptServer)
}
