package journal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/proto/service"
)

func TestNameOf(t *testing.T) {
	run, err := (&service.RunCommandMessage{ResultCompletionId: 7, Name: "charge card"}).MarshalVT()
	require.NoError(t, err)
	require.Equal(t, "charge card", NameOf(Entry{Type: Run, Payload: run}))
	require.Empty(t, NameOf(Entry{Type: RunCompletion, Payload: run}), "notifications have no name")
	require.Empty(t, NameOf(Entry{Type: Run}))
	for cut := range run {
		require.NotPanics(t, func() { NameOf(Entry{Type: Run, Payload: run[:cut]}) })
	}
}
