package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"platform/internal/raftgroup/logstore"
	"platform/internal/raftgroup/watchdog"
)

// fsm is between Raft and the state machine: it skips entries that the state already
// contains, stops permanently when the state machine fails, and keeps the history of
// configurations that a snapshot needs. It outlives Raft instances.
//
// Raft calls everything but Persist from one goroutine.
type fsm struct {
	sm      StateMachine
	applied atomic.Uint64 // index of sm.Applied, for readers on the hot path
	onFail  func(error)
	install *installer
	probe   *watchdog.Probe // of the watchdog
	// complete returns an entry with its data. Set before Raft runs.
	complete func(*raft.Log) (*raft.Log, error)
	// running returns a context that ends before the running Raft instance is shut down.
	running func() context.Context

	// fresh and entries are reused between batches.
	fresh   []*raft.Log
	entries []Entry

	// mu covers the fields below.
	mu      sync.Mutex
	failed  error
	configs []appliedConfig // ascending by index
	seen    uint64          // highest index that Raft passed in, command or not
}

// appliedConfig is a configuration and the index of its entry.
type appliedConfig struct {
	index  uint64
	config raft.Configuration
}

var (
	_ raft.BatchingFSM = (*fsm)(nil)
	_ raft.FSMSnapshot = (*fsmSnapshot)(nil)
)

func newFSM(sm StateMachine, onFail func(error)) *fsm {
	f := &fsm{sm: sm, onFail: onFail, running: context.Background}
	f.applied.Store(sm.Applied().Index)
	return f
}

// Apply is part of raft.FSM; Raft prefers ApplyBatch.
func (f *fsm) Apply(log *raft.Log) any { return f.ApplyBatch([]*raft.Log{log})[0] }

// ApplyBatch passes new command entries to the state machine. The result of an entry is
// what the state machine returned, or an error.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	results := make([]any, len(logs))
	if err := f.begin(logs); err != nil {
		for i := range results {
			results[i] = err
		}
		return results
	}

	applied := f.applied.Load()
	f.fresh = f.fresh[:0]
	for _, log := range logs {
		if log.Type == raft.LogCommand && log.Index > applied {
			f.fresh = append(f.fresh, log)
		}
	}
	if len(f.fresh) == 0 {
		return results
	}
	outcomes, err := f.applyFresh()
	clear(f.fresh)
	clear(f.entries)
	if err != nil {
		f.fail(err)
		for i := range results {
			results[i] = f.failure()
		}
		return results
	}
	n := 0
	for i, log := range logs {
		if log.Type == raft.LogCommand && log.Index > applied {
			results[i] = outcomes[n]
			n++
		}
	}
	return results
}

// applyBytes bounds the entries of one call of StateMachine.Apply, except for a single
// larger one, so that the watchdog can distinguish a large batch from a hanging state
// machine.
const applyBytes = 16 << 20

// applyFresh passes f.fresh to the state machine and returns an outcome for each entry.
func (f *fsm) applyFresh() (outcomes []any, err error) {
	for rest := f.fresh; len(rest) > 0; {
		n := entriesWithin(rest, applyBytes)
		if err := f.readEntries(rest[:n]); err != nil {
			return nil, err
		}
		some, err := f.applyWatched(f.entries)
		if err != nil {
			return nil, err
		}
		if outcomes == nil {
			outcomes = some
		} else {
			outcomes = append(outcomes, some...)
		}
		rest = rest[n:]
	}
	return outcomes, nil
}

// entriesWithin returns how many of the first entries have at most limit bytes together, at least one.
func entriesWithin(logs []*raft.Log, limit int) int {
	n, size := 1, logstore.EntryBytes(logs[0])
	for n < len(logs) && size+logstore.EntryBytes(logs[n]) <= limit {
		size += logstore.EntryBytes(logs[n])
		n++
	}
	return n
}

// readEntries converts logs to f.entries, and reads the data that was omitted from large ones.
func (f *fsm) readEntries(logs []*raft.Log) (err error) {
	f.entries = f.entries[:0]
	for _, log := range logs {
		if logstore.Deferred(log) {
			if log, err = f.complete(log); errors.Is(err, logstore.ErrCorrupt) {
				return fmt.Errorf("%w: %w", ErrQuarantined, err)
			} else if err != nil {
				return err
			}
		}
		f.entries = append(f.entries, Entry{Index: log.Index, Term: log.Term, Data: log.Data})
	}
	return nil
}

func (f *fsm) applyWatched(entries []Entry) ([]any, error) {
	op := f.probe.Begin(watchdog.Apply)
	defer op.End()
	outcomes, err := f.sm.Apply(entries)
	last := entries[len(entries)-1]
	if err != nil {
		return nil, fmt.Errorf("apply entries %d to %d: %w", entries[0].Index, last.Index, err)
	}
	if len(outcomes) != len(entries) {
		return nil, fmt.Errorf("state machine returned %d results for %d entries", len(outcomes), len(entries))
	}
	f.applied.Store(last.Index)
	return outcomes, nil
}

// begin rejects a batch after a failure and records configurations before the state machine
// can pass them.
func (f *fsm) begin(logs []*raft.Log) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	for _, log := range logs {
		if log.Type == raft.LogConfiguration {
			f.addConfigLocked(log.Index, raft.DecodeConfiguration(log.Data))
		}
	}
	f.seen = max(f.seen, logs[len(logs)-1].Index)
	return nil
}

// setConfig starts the history with the configuration of a snapshot.
func (f *fsm) setConfig(index uint64, config raft.Configuration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addConfigLocked(index, config)
}

func (f *fsm) addConfigLocked(index uint64, config raft.Configuration) {
	if n := len(f.configs); n > 0 && f.configs[n-1].index >= index {
		return // replayed by a later instance
	}
	f.configs = append(f.configs, appliedConfig{index: index, config: config})
}

// configAt returns the configuration in effect at index. It fails while the log up to index
// has not been seen, because a configuration may be in between.
func (f *fsm) configAt(index uint64) (appliedConfig, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen < index {
		return appliedConfig{}, fmt.Errorf("log replayed up to %d, state is at %d", f.seen, index)
	}
	for i := len(f.configs) - 1; i >= 0; i-- {
		if f.configs[i].index <= index {
			return f.configs[i], nil
		}
	}
	return appliedConfig{}, fmt.Errorf("no configuration known at index %d", index)
}

// alone reports whether the newest applied configuration has a single member.
func (f *fsm) alone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.configs)
	return n > 0 && len(f.configs[n-1].config.Servers) == 1
}

// dropConfigs drops the configurations that were replaced before index.
func (f *fsm) dropConfigs(index uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.configs) > 1 && f.configs[1].index <= index {
		f.configs = f.configs[1:]
	}
}

// fail permanently stops applying.
func (f *fsm) fail(err error) {
	f.mu.Lock()
	first := f.failed == nil
	if first {
		f.failed = fmt.Errorf("%w: %w", errFailed, err)
	}
	failed := f.failed
	f.mu.Unlock()
	if first {
		f.onFail(failed)
	}
}

func (f *fsm) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// Snapshot starts a virtual snapshot: it starts a flush of the state machine.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	op := f.probe.Begin(watchdog.Flush)
	wait, err := f.sm.Flush()
	op.End()
	if err != nil {
		err = fmt.Errorf("flush: %w", err)
		f.fail(err)
		return nil, err
	}
	return &fsmSnapshot{fsm: f, wait: wait, state: f.sm.Applied()}, nil
}

// Restore switches to the state that the installer received. Raft calls it within an
// InstallSnapshot request; the reader that it passes contains the ID of the snapshot.
func (f *fsm) Restore(source io.ReadCloser) error {
	if f.install == nil {
		return errors.New("snapshots cannot be installed here")
	}
	id, err := io.ReadAll(source)
	if err == nil {
		err = f.install.commit(f, string(id))
	}
	return errors.Join(err, source.Close())
}

// fsmSnapshot waits for a flush.
type fsmSnapshot struct {
	fsm   *fsm
	wait  func(context.Context) error
	state Position
	sink  *snapshotSink // set by Persist
}

// Persist waits until the state is durable and then records it. A flush may take until there is
// disk space, which stopping does not wait for.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	ctx := s.fsm.running()
	if err := s.wait(ctx); err != nil {
		err = fmt.Errorf("wait for flush: %w", err)
		if ctx.Err() == nil {
			s.fsm.fail(err)
		}
		return err
	}
	s.sink = sink.(*snapshotSink)
	s.sink.setState(s.state)
	return nil
}

// Release is called by Raft when it is done with the snapshot. If a newer one was installed
// meanwhile, Raft may now take this one for the latest, and would reject what follows the newer one.
func (s *fsmSnapshot) Release() {
	if s.sink != nil && s.sink.superseded() {
		s.fsm.install.rebuild("a snapshot was installed while one of the replaced state was taken")
	}
}
