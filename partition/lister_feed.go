package partition

import (
	"strings"
	"sync"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
)

const (
	// maxPendingValue is the size up to which values of results are kept in pending changes.
	maxPendingValue = 256
	// longFailure is the size from which failures are kept without what the index does not use.
	longFailure = 4 << 10
)

// feed is the committed changes that are not in the index yet. Each index has its own, so that
// it gets no change from before it was built.
type feed struct {
	x *lister

	mu      sync.Mutex // covers the fields below; may be locked while x.mu is held
	pending []change
	spare   []change
	lost    bool // changes are missing
}

// change is a written invocation; inv is nil if it was deleted.
type change struct {
	id  ids.Invocation
	inv *machine.Invocation
}

// Changed implements store.Observer.
func (f *feed) Changed(id ids.Invocation, inv *machine.Invocation) {
	if inv != nil {
		inv = brief(inv)
	}
	f.mu.Lock()
	f.pending = append(f.pending, change{id, inv})
	count := len(f.pending)
	f.mu.Unlock()
	if count >= somePending {
		signal(f.x.filled)
	}
	if count >= maxPending {
		f.overflow()
	}
}

// brief returns an invocation without large parts that the index does not use.
func brief(inv *machine.Invocation) *machine.Invocation {
	result, failure := inv.Result, inv.Failure
	switch {
	case result == nil:
	case len(result.Value) > maxPendingValue:
		result = new(journal.Result)
	case result.Failure != nil && failureSize(result.Failure) > longFailure:
		result = &journal.Result{Failure: &journal.Failure{Code: result.Failure.Code, Message: prefix(result.Failure.Message)}}
	}
	if failure != nil && len(failure.Message)+len(failure.Stacktrace)+len(failure.RelatedName) > longFailure {
		failure = &machine.AttemptFailure{Code: failure.Code, ErrorCode: failure.ErrorCode, Message: prefix(failure.Message)}
	}
	if result == inv.Result && failure == inv.Failure && inv.Await == nil {
		return inv
	}
	b := *inv
	b.Result, b.Failure, b.Await = result, failure, nil
	return &b
}

func failureSize(f *journal.Failure) int {
	size := len(f.Message)
	for i := range f.Metadata {
		size += len(f.Metadata[i].Key) + len(f.Metadata[i].Value)
	}
	return size
}

// prefix returns a copy of the part of a message that the index reads.
func prefix(message string) string {
	return strings.Clone(message[:min(len(message), listing.MessagePrefix)])
}

// overflow applies the pending changes or, if the index is in use, gives it up.
func (f *feed) overflow() {
	if f.x.mu.TryLock() {
		defer f.x.mu.Unlock()
		f.x.applyPending()
		return
	}
	f.lose()
}

// Replaced implements store.Observer.
func (f *feed) Replaced() { f.lose() }

// lose makes the index outdated.
func (f *feed) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost, f.pending = true, nil
}

func (f *feed) outdated() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}
