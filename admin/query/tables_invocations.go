package query

import (
	"context"
	"iter"
	"slices"

	"platform/partition"
	"platform/partition/machine"
)

var vqueueColumn = of("vqueue_id", Text, "virtual queue of the invocation, if it has a scope", vqueueOf)

func sysInvocation() *Table {
	return define("sys_invocation", "Invocations, including the attempts that their leaders report.", invocationSource, slices.Concat(
		[]column[row]{invocationIDColumn, vqueueColumn},
		targetColumns, sourceColumns, progressColumns, timeColumns, awaitColumns,
		[]column[row]{retryColumn, lastStartColumn, nextRetryColumn, deploymentColumn, serverColumn, failureColumn, failureCodeColumn},
		relatedEntryColumns, relatedCommandColumns,
		[]column[row]{awaitingColumn, statusColumn}, resultColumns, []column[row]{pausingColumn, noResponseColumn, throttledColumn, activeColumn, suspendColumn, abortColumn}, requestColumns,
	))
}

func sysInvocationStatus() *Table {
	by := func(name string) column[row] {
		return sourceColumns[slices.IndexFunc(sourceColumns, func(c column[row]) bool { return c.name == name })]
	}
	return define("sys_invocation_status", "Invocations as stored, without the state of attempts.", invocationSource, slices.Concat(
		[]column[row]{partitionKeyColumn, invocationIDColumn, vqueueColumn, storedStatusColumn}, resultColumns, targetColumns,
		[]column[row]{
			by("invoked_by"), by("invoked_by_id"), by("invoked_by_subscription_id"), by("invoked_by_service_name"),
			by("invoked_by_target"), by("restarted_from"),
		},
		progressColumns, timeColumns, awaitColumns, requestColumns,
	))
}

func sysInvocationState() *Table {
	return define("sys_invocation_state", "The state of attempts, of invocations that have any.", attemptsSource, slices.Concat(
		[]column[row]{
			partitionKeyColumn, invocationIDColumn, inFlightColumn, retryColumn, lastStartColumn, deploymentColumn, serverColumn,
			nextRetryColumn, failureColumn, failureCodeColumn,
		},
		relatedCommandColumns, relatedEntryColumns, []column[row]{awaitingColumn, noResponseColumn, throttledColumn, activeColumn, suspendColumn, abortColumn},
	))
}

// attemptsSource contains the invocations with attempts.
var attemptsSource = source[row]{
	identity:  invocationSource.identity,
	cost:      invocationSource.cost,
	owner:     ownerOfInvocation,
	ownership: byTargetOwner,
	pages: func(ctx context.Context, s *session, sel *selection) iter.Seq2[[]row, error] {
		return func(yield func([]row, error) bool) {
			scan := scanOf(partition.Invocations, sel, s.partitions().Scoped())
			scan.Statuses = []machine.Status{machine.Invoked}
			scan.Detail = max(scan.Detail, partition.Heads)
			for page, err := range gather(ctx, s, scan) {
				page = slices.DeleteFunc(page, func(r row) bool { return r.Record.Attempts == nil })
				if !yield(page, err) {
					return
				}
			}
		}
	},
}
