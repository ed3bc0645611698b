package invoker

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"platform/metadata"
)

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestTheLastAttemptIsLogged(t *testing.T) {
	for then, text := range map[metadata.OnMaxAttempts]string{
		metadata.Pause: "invocation paused after its last attempt", metadata.Kill: "invocation failed with its last attempt",
	} {
		cfg := quickConfig()
		cfg.Defaults.Retry.MaxAttempts, cfg.Defaults.Retry.OnMaxAttempts = 3, then
		b := scripted(t, cfg, status(500, "", "", ""))
		var log syncBuffer
		b.session.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		id, _ := b.shard.call(greeter, 1, "1")
		require.Eventually(t, func() bool { return strings.Contains(log.String(), text) }, time.Minute, time.Millisecond)
		require.Equal(t, 2, strings.Count(log.String(), id.String()), "the first failure and the end: %s", log.String())
		require.Contains(t, log.String(), "failed_attempts=3")
	}
}
