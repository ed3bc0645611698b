package backend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/partition/machine"
)

func TestRejectionsNameStatusesAsTheDocumentationDoes(t *testing.T) {
	for status, want := range map[machine.Status]string{machine.Invoked: "it is in progress", machine.Inboxed: "it is pending", machine.Suspended: "it is suspended"} {
		require.ErrorContains(t, rejection(machine.Outcome{Code: machine.NotEnded, Status: status}), want)
	}
	require.ErrorContains(t, rejection(machine.Outcome{Code: machine.NotStarted, Status: machine.Scheduled}), "it is scheduled")
}
