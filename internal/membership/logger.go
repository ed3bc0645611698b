package membership

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// gossipLog turns the library's lines into debug records: much of what it calls an
// error is normal life of a cluster, and what operators should know is logged here.
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
