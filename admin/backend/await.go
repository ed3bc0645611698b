package backend

import (
	"time"

	"platform/admin"
	"platform/admin/rest"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// awaited is what an invocation waits for: as stored for a suspended one, or as reported by a
// running handler. The time is when it was suspended, or last active.
func awaited(r partition.Record) (*admin.Await, rest.Timestamp) {
	if r.Status == machine.Suspended {
		return describeAwait(r.Await), rest.Timestamp(r.ModifiedAt)
	}
	if r.Attempts == nil || r.Attempts.Awaiting == nil {
		return nil, 0
	}
	await := describeAwait(r.Attempts.Awaiting.On)
	await.Executing = r.Attempts.Awaiting.Executing
	return await, timestampOf(r.Attempts.ActiveAt)
}

func timestampOf(t time.Time) rest.Timestamp {
	if t.IsZero() {
		return 0
	}
	return rest.Timestamp(t.UnixMilli())
}

var combinators = map[journal.Combinator]string{
	journal.CombineUnknown: "Unknown", journal.CombineFirstCompleted: "FirstCompleted", journal.CombineAllCompleted: "AllCompleted",
	journal.CombineFirstSucceededOrAllFailed: "FirstSucceededOrAllFailed", journal.CombineAllSucceededOrFirstFailed: "AllSucceededOrFirstFailed",
}

// describeAwait converts a tree for users. The cancel signal, which is part of every wait, is
// omitted.
func describeAwait(f *journal.Future) *admin.Await {
	await := &admin.Await{Combinator: combinators[f.Combinator], Completions: f.Completions, Names: f.Names}
	for _, s := range f.Signals {
		if s != journal.CancelSignal {
			await.Signals = append(await.Signals, s)
		}
	}
	for i := range f.Nested {
		await.Nested = append(await.Nested, describeAwait(&f.Nested[i]))
	}
	if len(await.Completions)+len(await.Signals)+len(await.Names) == 0 && len(await.Nested) == 1 {
		return await.Nested[0] // the remainder of "this, or a cancel"
	}
	return await
}
