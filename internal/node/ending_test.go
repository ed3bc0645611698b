package node

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANodeThatDoesNotStopIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var exited time.Duration
		e := newEnding(time.Minute, slog.New(slog.NewTextHandler(&out, nil)))
		start := time.Now()
		e.exit = func() { exited = time.Since(start) }

		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, exited, "nothing ends a node that was not told to stop")

		start = time.Now()
		e.enter("requests")
		ctx, cancel := e.context()
		defer cancel()
		time.Sleep(30 * time.Second)
		e.enter("files") // does not restart the timer
		<-ctx.Done()
		require.Equal(t, 57*time.Second, time.Since(start))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, time.Minute, exited)
		require.Contains(t, out.String(), "waits_for=files")
		require.Contains(t, out.String(), "TestANodeThatDoesNotStopIsEnded", "where it hangs")
	})
}

func TestANodeThatStopsInTimeIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnding(time.Minute, slog.New(slog.DiscardHandler))
		e.exit = func() { t.Error("exited") }
		e.begin()
		time.Sleep(59 * time.Second)
		e.over()
		time.Sleep(time.Hour)
	})
}
