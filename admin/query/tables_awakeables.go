package query

import (
	"context"
	"iter"
	"slices"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
)

// awakeableRow is an awakeable that an invocation waits for.
type awakeableRow struct {
	*row
	signal uint32
}

func (a *awakeableRow) id() string {
	return ids.Awakeable{Invocation: a.Record.ID, Signal: a.signal}.String()
}

// awakeablesOf returns the awakeables that an invocation waits for. The journal does not contain
// awakeables: the server learns of them when a handler reports what it waits for.
func awakeablesOf(r *row) (list []awakeableRow) {
	await := awaitOf(&r.Record)
	if await == nil {
		return nil
	}
	var signals []uint32
	for id := range await.Leaves() {
		if id.Signal && id.Name == "" && id.Index >= ids.FirstAwakeable {
			signals = append(signals, id.Index)
		}
	}
	slices.Sort(signals)
	for _, signal := range slices.Compact(signals) {
		list = append(list, awakeableRow{r, signal})
	}
	return list
}

// awaitOf returns what an invocation is known to wait for.
func awaitOf(r *partition.Record) *journal.Future {
	switch {
	case r.Status == machine.Suspended:
		return r.Await
	case r.Status == machine.Invoked && r.Attempts != nil && r.Attempts.Awaiting != nil:
		return r.Attempts.Awaiting.On
	}
	return nil
}

func (a *awakeableRow) waitingSince() value {
	if a.Record.Status == machine.Suspended {
		return millis(a.Record.ModifiedAt)
	}
	return moment(a.Record.Attempts.ActiveAt)
}

func sysAwakeable() *Table {
	src := source[awakeableRow]{
		cost:      invocationSource.cost,
		owner:     func(a *awakeableRow) owner { return ownerOfInvocation(a.row) },
		ownership: byTargetOwner,
		identity:  func(a *awakeableRow, b []byte) []byte { return append(b, a.id()...) },
		pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]awakeableRow, error] {
			return func(yield func([]awakeableRow, error) bool) {
				sel.whole = true
				scan := scanOf(partition.Invocations, sel, s.partitions().Scoped())
				scan.Statuses = []machine.Status{machine.Suspended, machine.Invoked}
				var list []awakeableRow
				for page, err := range gather(ctx, s, scan) {
					list = list[:0]
					for i := range page {
						list = append(list, awakeablesOf(&page[i])...)
					}
					if !yield(list, err) {
						return
					}
				}
			}
		},
	}
	// invocation returns a column of the invocation that waits.
	invocation := func(c column[row]) column[awakeableRow] {
		return column[awakeableRow]{c.name, c.typ, c.about, func(a *awakeableRow) value { return c.value(a.row) }, c.field, false}
	}
	columns := []column[awakeableRow]{
		invocation(partitionKeyColumn),
		{"id", Text, "awakeable id", func(a *awakeableRow) value { return a.id() }, byAwakeable, false},
		{"invocation_id", Text, "invocation that waits for it", func(a *awakeableRow) value { return a.Record.ID.String() }, byID, false},
		{"invocation_status", Text, "suspended, or running while its handler waits", func(a *awakeableRow) value { return StatusOf(a.Record) }, noField, false},
	}
	for _, c := range targetColumns {
		columns = append(columns, invocation(c))
	}
	columns = append(columns, column[awakeableRow]{"waiting_since", Timestamp, "when the invocation was suspended; of a running one, when it was last active", (*awakeableRow).waitingSince, noField, false},
		invocation(of("created_at", Timestamp, "arrival of the invocation", func(inv *machine.Invocation) value { return millis(inv.CreatedAt) })))
	return define("sys_awakeable", "Awakeables that invocations wait for. The server knows those of suspended invocations, and with service protocol 7 those of running ones. "+
		"Before protocol 7, a handler reports what it waits for when it suspends, after the inactivity timeout at the latest.", src, columns)
}
