package membership

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lockedBuffer collects log output; it is safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) contains(s string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.b.String(), s)
}

func (b *lockedBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func TestMemberlistLogsAtDebugLevel(t *testing.T) {
	var out lockedBuffer
	newGossipLogger(slog.New(slog.NewTextHandler(&out, nil))).Printf("[ERR] memberlist: %s", "news")
	require.Empty(t, out.b.String())
	newGossipLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))).Printf("[ERR] memberlist: %s", "news")
	require.Contains(t, out.b.String(), "level=DEBUG msg=gossip text=news")
}
