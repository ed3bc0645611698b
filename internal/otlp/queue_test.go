package otlp

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// The bounds of a queue include what a slow collector has not accepted yet.
func TestItemsThatAreBeingExportedCount(t *testing.T) {
	started, accept := make(chan struct{}), make(chan struct{})
	q := newQueue(Logs, func(context.Context, []string) error {
		started <- struct{}{}
		<-accept
		return nil
	}, slog.New(slog.DiscardHandler))
	q.add("large", MaxQueuedSize)
	<-started
	q.add("small", 1)
	require.Equal(t, Counts{Dropped: 1, Waiting: 1, WaitingSize: MaxQueuedSize}, q.currentCounts())
	close(accept)
	q.Close()
	require.Equal(t, Counts{Exported: 1, Dropped: 1}, q.currentCounts())
}
