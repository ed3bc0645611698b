package query

import (
	"context"
	"errors"
	"fmt"

	"platform/internal/access"
	"platform/internal/ids"
	"platform/partition"
	"platform/partition/journal"
	"platform/partition/machine"
	"platform/proto/service"
)

// ErrNoEntry means that an invocation does not exist or has no such journal entry.
var ErrNoEntry = errors.New("no such journal entry")

// ErrNoPayload means that a journal entry has no payload: its type has none, or it failed.
var ErrNoPayload = errors.New("the journal entry has no payload")

// EntryPayload returns the payload of a journal entry: the input, result, parameter or value that
// entry_json contains. Unlike results of queries it has no limit of its own, so reserve is called
// with the size of the entry in bytes before the entry is read; its error is returned.
func (e *Engine) EntryPayload(ctx context.Context, id ids.Invocation, index uint32, reserve func(size int) error) ([]byte, error) {
	client := access.ClientFrom(ctx)
	if err := e.slots.acquire(ctx, client, e.cfg.queueTimeout); err != nil {
		return nil, err
	}
	defer e.slots.release(client)
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.Timeout, ErrTimeout)
	defer cancel()
	scan := partition.Scan{
		Table: partition.Journal, Detail: partition.Heads, ID: id, From: partition.FromEntry(id, index),
		Keys: partition.KeyRange{First: id.PartitionKey(), Last: id.PartitionKey()},
	}
	row, err := e.firstRow(ctx, &scan)
	if err != nil {
		return nil, err
	}
	if row.Index != uint64(index) {
		return nil, ErrNoEntry
	}
	if err := reserve(row.Size); err != nil {
		return nil, err
	}
	scan.Detail = partition.Whole
	if row, err = e.firstRow(ctx, &scan); err != nil {
		return nil, err
	}
	if row.Index != uint64(index) {
		return nil, ErrNoEntry // deleted in between
	}
	return payloadOf(row.Entry)
}

// firstRow returns the first row of a scan of one partition, or ErrNoEntry.
func (e *Engine) firstRow(ctx context.Context, scan *partition.Scan) (*partition.Row, error) {
	target := machine.PartitionOf(scan.Keys.First, e.cfg.Partitions.Count())
	page, err := e.cfg.Partitions.Scan(ctx, target, scan)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: partition %d: %w", ErrUnavailable, target, err)
	}
	if len(page.Rows) == 0 {
		return nil, ErrNoEntry
	}
	return &page.Rows[0], nil
}

// payloadOf returns the payload of an entry, or ErrNoPayload.
func payloadOf(e journal.Entry) ([]byte, error) {
	result := new(journal.Result)
	var err error
	switch e.Type {
	case journal.Input:
		var m service.InputCommandMessage
		err = m.UnmarshalVTUnsafe(e.Payload)
		result.Value = m.Value.GetContent()
	case journal.Output:
		*result, err = journal.ParseOutput(e.Payload)
	case journal.SetState:
		var c journal.StateCommand
		c, err = journal.ParseState(e.Type, e.Payload)
		result.Value = c.Value
	case journal.GetEagerState:
		var m service.GetEagerStateCommandMessage
		err = m.UnmarshalVTUnsafe(e.Payload)
		if result = nil; m.GetValue() != nil {
			result = &journal.Result{Value: m.GetValue().GetContent()}
		}
	case journal.Call:
		var c journal.CallCommand
		c, err = journal.ParseCall(e.Payload)
		result.Value = c.Parameter
	case journal.OneWayCall:
		var c journal.OneWayCallCommand
		c, err = journal.ParseOneWayCall(e.Payload)
		result.Value = c.Parameter
	case journal.CompletePromise:
		var c journal.PromiseCommand
		c, err = journal.ParsePromise(e.Type, e.Payload)
		*result = c.Result
	case journal.SendSignal:
		var c journal.SignalCommand
		c, err = journal.ParseSendSignal(e.Payload)
		result = c.Result
	case journal.CompleteAwakeable:
		var c journal.SignalCommand
		c, err = journal.ParseCompleteAwakeable(e.Payload)
		result = c.Result
	default:
		if e.Type.IsCommand() {
			return nil, ErrNoPayload
		}
		var n journal.Notification
		n, err = journal.ParseNotification(e.Payload)
		r, has := n.Result()
		if result = nil; has {
			result = &r
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("journal entry: %w", err)
	case result == nil || result.Failure != nil:
		return nil, ErrNoPayload
	}
	return result.Value, nil
}
