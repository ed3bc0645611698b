package store

import (
	"log/slog"
	"sync"
	"time"
)

// backgroundLogInterval is the minimum interval between logged failures of background work.
// A flush that fails is repeated several times a second.
const backgroundLogInterval = 10 * time.Second

// backgroundErrors logs failures of flushes and compactions.
type backgroundErrors struct {
	log *slog.Logger

	mu      sync.Mutex // covers the fields below
	lastLog time.Time
	skipped int // failures since lastLog
}

func (b *backgroundErrors) report(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.lastLog.IsZero() || now.Sub(b.lastLog) >= backgroundLogInterval {
		b.log.Error("flush or compaction failed, retrying", "err", err, "repeated", b.skipped)
		b.lastLog, b.skipped = now, 0
		return
	}
	b.skipped++
}
