package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
)

func TestDeploymentOfAnInvocation(t *testing.T) {
	for want, inv := range map[string]client.Invocation{
		"":                          {Status: "backing-off"},
		"dp_1":                      {Status: "completed", PinnedDeploymentID: "dp_1"},
		"dp_1 [required] using a/1": {Status: "backing-off", PinnedDeploymentID: "dp_1", LastAttemptDeployment: "dp_1", LastAttemptServer: "a/1"},
		"dp_2 using a/1":            {Status: "backing-off", LastAttemptDeployment: "dp_2", LastAttemptServer: "a/1"},
	} {
		require.Equal(t, want, pinned(inv))
	}
}
