package pebbledb

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// damageLogInterval is the minimum time between messages about damage: a damaged block may be read again and again.
const damageLogInterval = time.Minute

// ReportDamage makes a Pebble database that is opened with o log damaged blocks of its files. Pebble's default is to end
// the process, with all replicas of the node. Instead, reading such a block returns an error that
// pebble.IsCorruptionError recognizes. o.EventListener must be set.
func ReportDamage(o *pebble.Options, log *slog.Logger) {
	var mu sync.Mutex // covers last
	var last time.Time
	o.EventListener.DataCorruption = func(i pebble.DataCorruptionInfo) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); last.IsZero() || now.Sub(last) >= damageLogInterval {
			last = now
			log.Error("damage in a file of a database", "path", i.Path, "err", i.Details)
		}
	}
}

// Explain returns an error of Pebble without its internals: for damage, the file and the reason.
func Explain(err error) error {
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		return fmt.Errorf("%s is damaged: %w", i.Path, i.Details)
	}
	return err
}
