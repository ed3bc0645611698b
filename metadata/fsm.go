package metadata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"platform/internal/broadcast"
	"platform/internal/feature"
	"platform/internal/keyring"
	"platform/internal/raftgroup"
)

// fsm applies the group's log to the state file and publishes the result. The group calls
// Apply from one goroutine; view is safe for concurrent use.
type fsm struct {
	db *database
	// mu is held while the view is replaced: by Apply or Import, and by useKeys.
	mu      sync.Mutex
	view    atomic.Pointer[view]
	applied atomic.Pointer[raftgroup.Position]
	changed broadcast.Channel // of applied
}

var _ raftgroup.StateMachine = (*fsm)(nil)

// newFSM starts from the content of the state file.
func newFSM(db *database) (*fsm, error) {
	st, at, err := db.load()
	if err != nil {
		return nil, err
	}
	f := &fsm{db: db}
	f.applied.Store(&at)
	f.view.Store(newView(st))
	return f, nil
}

// Apply interprets entries and stores the result with the applied position in one
// transaction, then publishes it. The transaction is synced before Apply returns: changes
// are rare, and an acknowledged change is then in the file.
func (f *fsm) Apply(entries []raftgroup.Entry) ([]any, error) {
	d := newDraft(f.view.Load().state)
	results := make([]any, len(entries))
	applied := *f.applied.Load()
	for i, entry := range entries {
		if entry.Index <= applied.Index {
			continue // replayed after a restart
		}
		o, err := applyEntry(d, entry.Index, entry.Data)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", entry.Index, err)
		}
		results[i] = o
		applied = raftgroup.Position{Index: entry.Index, Term: entry.Term}
	}
	if err := f.db.write(applied, d.writes); err != nil {
		return nil, err
	}
	f.publish(d, applied)
	return results, nil
}

// publish replaces the view of readers, and then wakes those that wait for it or for the
// position.
func (f *fsm) publish(d *draft, at raftgroup.Position) {
	f.mu.Lock()
	next, wake := f.view.Load().next(d)
	f.view.Store(next)
	f.mu.Unlock()
	f.applied.Store(&at)
	wake()
	f.changed.Send()
}

// useKeys makes readers see secrets that are encrypted with these keys.
func (f *fsm) useKeys(keys *keyring.Keyring) {
	f.mu.Lock()
	next, wake := f.view.Load().withKeys(keys)
	f.view.Store(next)
	f.mu.Unlock()
	wake()
}

// await waits until the entry at index has been applied here.
func (f *fsm) await(ctx context.Context, index uint64) error {
	for {
		changed := f.changed.Next()
		if f.Applied().Index >= index {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// current returns the view of readers.
func (f *fsm) current() *view { return f.view.Load() }

// Applied returns the position of the last applied entry.
func (f *fsm) Applied() raftgroup.Position { return *f.applied.Load() }

// Flush does nothing: each Apply is durable when it returns.
func (f *fsm) Flush() (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

// CheckEntry implements raftgroup.EntryChecker. Entries that need a newer release are applied
// by others, so they are accepted: this replica stops when it applies them.
func (f *fsm) CheckEntry(data []byte) error {
	_, _, err := decodeEntry(data)
	if _, newer := errors.AsType[*feature.UnsupportedError](err); newer {
		return nil
	}
	return err
}
