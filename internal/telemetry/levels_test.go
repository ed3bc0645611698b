package telemetry

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLevelsChangeWhileLoggersAreInUse requires that a change applies to loggers that exist, by
// component.
func TestLevelsChangeWhileLoggersAreInUse(t *testing.T) {
	var out bytes.Buffer
	log, levels, err := NewLogger(LogOptions{Format: Compact, Filter: "warn,platform=info"}, &out, &out)
	require.NoError(t, err)
	fabric, invoker := log.With("component", "fabric"), log.With("component", "platform/invoker").With("partition", 3)
	enabled := func(l *slog.Logger, level slog.Level) bool { return l.Enabled(context.Background(), level) }
	require.False(t, enabled(fabric, slog.LevelInfo))
	require.True(t, enabled(invoker, slog.LevelInfo))

	require.NoError(t, levels.Set("error,fabric=debug", 0))
	require.True(t, enabled(fabric, slog.LevelDebug))
	require.False(t, enabled(invoker, slog.LevelWarn))
	require.False(t, enabled(log, slog.LevelWarn))
	require.False(t, enabled(log.With("component", "later"), slog.LevelWarn))
	fabric.Debug("seen")
	require.Contains(t, out.String(), "seen")

	require.Error(t, levels.Set("loud", 0))
	require.Equal(t, LevelState{
		Filter: "error,fabric=debug", Configured: "warn,platform=info", Components: []string{"fabric", "later", "platform/invoker"},
	}, levels.State())
	require.NoError(t, levels.Set("", 0))
	require.Equal(t, "warn,platform=info", levels.State().Filter)
	require.True(t, enabled(invoker, slog.LevelInfo))
}

func TestLevelsAreRestoredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, levels, err := NewLogger(LogOptions{Filter: "info"}, new(bytes.Buffer), new(bytes.Buffer))
		require.NoError(t, err)
		debug := func() bool { return log.Enabled(context.Background(), slog.LevelDebug) }
		require.NoError(t, levels.Set("debug", time.Minute))
		require.Equal(t, time.Now().Add(time.Minute), levels.State().Until)
		time.Sleep(59 * time.Second)
		require.NoError(t, levels.Set("trace", time.Minute)) // replaces the first timer
		time.Sleep(59 * time.Second)
		require.True(t, debug())
		time.Sleep(time.Second)
		synctest.Wait()
		require.False(t, debug())
		require.Zero(t, levels.State().Until)

		require.NoError(t, levels.Set("debug", time.Minute))
		require.NoError(t, levels.Set("debug", 0))
		time.Sleep(time.Hour)
		require.True(t, debug(), "until the restart")
	})
}

// A filter that was set instead of the configured one is not replaced when the configuration changes.
func TestConfiguredLevelsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, levels, err := NewLogger(LogOptions{Filter: "info"}, new(bytes.Buffer), new(bytes.Buffer))
		require.NoError(t, err)
		require.NoError(t, levels.Configure("warn"))
		require.Equal(t, "warn", levels.State().Filter)
		require.Error(t, levels.Configure("loud"))

		require.NoError(t, levels.Set("debug", time.Minute))
		require.NoError(t, levels.Configure("error"))
		require.Equal(t, "debug", levels.State().Filter)
		time.Sleep(2 * time.Minute)
		require.Equal(t, "error", levels.State().Filter)

		require.NoError(t, levels.Set("debug", 0))
		require.NoError(t, levels.Configure("info"))
		require.Equal(t, "debug", levels.State().Filter)
		require.NoError(t, levels.Set("", 0))
		require.Equal(t, "info", levels.State().Filter)
	})
}
