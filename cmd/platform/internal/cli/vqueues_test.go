package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"platform/cmd/platform/internal/client"
)

func TestDescribedQueuesSayWhatIsNotShown(t *testing.T) {
	queue := client.VQueue{ID: "vq_1", Inbox: 290, Running: 1, Finished: 9}
	require.Empty(t, entriesFooter(&queue, 300, client.QueueOrder))
	require.Equal(t, "Showing 100/300 entries. Use --limit to see more.", entriesFooter(&queue, 100, client.QueueOrder))
	require.Contains(t, entriesFooter(&queue, 100, client.AsFound), "Showing 100/300 entries, an arbitrary selection.")
}
