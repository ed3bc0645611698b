package partition

import (
	"strings"
	"sync"

	"platform/internal/ids"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
)

// changeBytes is the size of a pending change apart from its texts.
const changeBytes = 1 << 10

// feed is the committed changes that are not in the index yet. Each index has its own, so that
// it gets no change from before it was built.
type feed struct {
	x *lister

	mu      sync.Mutex // covers the fields below; may be locked while x.mu is held
	pending []change
	spare   []change
	bytes   int  // of pending
	lost    bool // changes are missing
}

// change is a written invocation; inv is nil if it was deleted.
type change struct {
	id  ids.Invocation
	inv *machine.Invocation
}

// Changed implements store.Observer.
func (f *feed) Changed(id ids.Invocation, inv *machine.Invocation) {
	size := changeBytes
	if inv != nil {
		inv = copyForIndex(inv)
		size += len(inv.Target.Key)
		if inv.IdempotencyKey != nil {
			size += len(*inv.IdempotencyKey)
		}
	}
	f.mu.Lock()
	f.pending = append(f.pending, change{id, inv})
	f.bytes += size
	count, bytes := len(f.pending), f.bytes
	f.mu.Unlock()
	if count >= somePending || bytes >= somePendingBytes {
		signal(f.x.filled)
	}
	if count >= maxPending || bytes >= maxPendingBytes {
		f.overflow()
	}
}

// copyForIndex returns a copy of an invocation with what the index uses: the invocation itself would keep
// the log entries that it has come with, which may have megabytes each.
func copyForIndex(inv *machine.Invocation) *machine.Invocation {
	b := *inv
	b.Source = machine.Source{Kind: inv.Source.Kind}
	b.Trace, b.Await, b.LastPause, b.Sinks, b.Requests, b.Flow = machine.Trace{}, nil, nil, nil, nil, nil
	brief := b.Owned()
	if r := inv.Result; r != nil {
		brief.Result = new(journal.Result)
		if r.Failure != nil {
			brief.Result.Failure = &journal.Failure{Code: r.Failure.Code, Message: prefix(r.Failure.Message)}
		}
	}
	if f := inv.Failure; f != nil {
		brief.Failure = &machine.AttemptFailure{Code: f.Code, ErrorCode: strings.Clone(f.ErrorCode), Message: prefix(f.Message)}
	}
	return brief
}

// prefix returns a copy of the part of a message that the index reads.
func prefix(message string) string {
	return strings.Clone(message[:min(len(message), listing.MessagePrefix)])
}

// overflow applies the pending changes or, if the index is in use, gives it up.
func (f *feed) overflow() {
	if f.x.mu.TryLock() {
		defer f.x.mu.Unlock()
		f.x.applyPendingLocked()
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
	f.lost, f.pending, f.bytes = true, nil, 0
}

func (f *feed) outdated() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}
