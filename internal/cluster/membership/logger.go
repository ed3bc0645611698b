package membership

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// gossipLog logs memberlist's output at debug level: most of what it calls an error is
// normal operation, and this package logs the relevant events itself.
type gossipLog struct{ log *slog.Logger }

func newGossipLogger(l *slog.Logger) *log.Logger { return log.New(gossipLog{l}, "", 0) }

// Write logs one line.
func (g gossipLog) Write(line []byte) (int, error) {
	if g.log.Enabled(context.Background(), slog.LevelDebug) {
		text := bytes.TrimSpace(line)
		if _, rest, ok := bytes.Cut(text, []byte("memberlist: ")); ok {
			text = rest
		}
		g.log.Debug("gossip", "text", string(text))
	}
	return len(line), nil
}
