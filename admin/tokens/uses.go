package tokens

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"platform/metadata"
)

const (
	// usePeriod is the interval at which a node records the uses of tokens, useGranularity the
	// minimum time between two recorded uses of a token.
	usePeriod      = time.Minute
	useGranularity = 10 * time.Minute
)

// Uses collects the uses of tokens on a node and records them in the metadata, seldom. The
// zero value is ready to use.
type Uses struct {
	mu   sync.Mutex // covers last
	last map[string]time.Time
}

// Add notes the use of a token in memory.
func (u *Uses) Add(id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	if len(u.last) < metadata.MaxTokens {
		u.last[id] = at
	}
}

// Run records the uses until ctx ends.
func (u *Uses) Run(ctx context.Context, store *metadata.Store, log *slog.Logger) error {
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		uses := u.due(store.Token)
		if len(uses) == 0 {
			continue
		}
		if err := store.UseTokens(ctx, uses); err != nil && ctx.Err() == nil {
			log.Warn("uses of tokens not recorded", "err", err)
		}
	}
}

// due returns the uses to be recorded, and forgets all others.
func (u *Uses) due(find func(string) (metadata.Token, bool)) (uses []metadata.TokenUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, at := range u.last {
		if token, known := find(id); known && at.Sub(token.LastUsed) >= useGranularity {
			uses = append(uses, metadata.TokenUse{ID: id, At: at})
		}
	}
	clear(u.last)
	return uses
}
