package lifecycle

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANodeThatDoesNotStopIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var exited time.Duration
		s := NewShutdown(time.Minute, slog.New(slog.NewTextHandler(&out, nil)))
		start := time.Now()
		s.exit = func() { exited = time.Since(start) }

		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, exited, "nothing ends a node that was not told to stop")

		start = time.Now()
		s.Enter("requests")
		ctx, cancel := s.Context()
		defer cancel()
		time.Sleep(30 * time.Second)
		s.Enter("files") // does not restart the timer
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
		var out bytes.Buffer
		s := NewShutdown(time.Minute, slog.New(slog.NewTextHandler(&out, nil)))
		s.exit = func() { t.Error("exited") }
		s.Begin()
		s.Enter("requests")
		time.Sleep(time.Second)
		require.Empty(t, out.String())
		s.Enter("the disk")
		time.Sleep(56 * time.Second)
		s.Enter("files")
		time.Sleep(2 * time.Second)
		s.Complete()
		time.Sleep(time.Hour)
		require.Contains(t, out.String(), `msg="server is still stopping" waits_for="the disk" exits_within=55s`)
		require.Equal(t, 11, strings.Count(out.String(), "still stopping"))
		require.Contains(t, out.String(), `msg="server stopped" took=59s longest_wait="the disk" waited=56s`)
	})
}
