package store

import (
	"log/slog"
	"sync"
	"time"
)

// backgroundPause is how often failures of background work are logged. Pebble tries
// again at once, which on a full disk means dozens of times a second.
const backgroundPause = 10 * time.Second

// backgroundErrors logs failures of flushes and compactions.
type backgroundErrors struct {
	log *slog.Logger

	mu      sync.Mutex // covers what follows
	last    time.Time  // logged
	skipped int        // since then
}

func (b *backgroundErrors) report(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.last.IsZero() || now.Sub(b.last) >= backgroundPause {
		b.log.Error("flush or compaction failed, will be tried again", "err", err, "repeated", b.skipped)
		b.last, b.skipped = now, 0
		return
	}
	b.skipped++
}
