package fabric

import (
	"context"
	"fmt"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/codec"
	"platform/partition/machine"
	"platform/proto/node"
)

// Scan implements Replica. A page does not depend on the replica that returned the previous
// one, so a table scan continues across leader changes.
func (h *Handle) Scan(ctx context.Context, s *partition.Scan) (partition.Page, error) {
	if p := h.localLeader(); p != nil {
		if page, err := p.Scan(ctx, s); err == nil || !canRetryElsewhere(err) {
			return page, err
		}
	}
	return onLeader(ctx, h, func(r Replica) (partition.Page, error) { return r.Scan(ctx, s) })
}

// Scan implements Replica.
func (r *Remote) Scan(ctx context.Context, s *partition.Scan) (partition.Page, error) {
	m, err := r.roundTrip(ctx, &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_SCAN, Scan: scanToWire(s)})
	if err != nil {
		return partition.Page{}, err
	}
	if s.Strong && !m.Strong {
		return partition.Page{}, fmt.Errorf("partition %d: %s runs an older version without strong consistency; upgrade it", r.id, r.address)
	}
	page := partition.Page{Rows: make([]partition.Row, len(m.Rows)), Matched: int(m.Matched), Next: m.Next, Read: int(m.Read)}
	for i, row := range m.Rows {
		if page.Rows[i], err = rowFromWire(row); err != nil {
			return partition.Page{}, r.decodeError(err)
		}
	}
	return page, nil
}

// scan executes a scan request on this node's replica.
func scan(ctx context.Context, p Local, req *node.PartitionRequest, r *node.PartitionResponse) error {
	s, err := scanFromWire(req.GetScan())
	if err != nil {
		return err
	}
	page, err := p.Scan(ctx, s)
	if err != nil {
		return err
	}
	r.Next, r.Read, r.Matched, r.Strong = page.Next, uint64(page.Read), uint64(page.Matched), s.Strong
	r.Rows = make([]*node.PartitionRow, len(page.Rows))
	for i := range page.Rows {
		if r.Rows[i], err = rowToWire(s.Table, &page.Rows[i]); err != nil {
			return err
		}
	}
	return nil
}

func scanToWire(s *partition.Scan) *node.PartitionScan {
	m := &node.PartitionScan{
		Table: uint32(s.Table), Detail: uint32(s.Detail), From: s.From,
		FirstKey: s.Keys.First, LastKey: s.Keys.Last,
		Scope: s.Scope, Services: s.Services, Objects: s.Objects, Handlers: s.Handlers, Ahead: s.Ahead, Strong: s.Strong,
		Events: s.Events,
	}
	if !s.ID.IsZero() {
		m.Id = s.ID[:]
	}
	for _, status := range s.Statuses {
		m.Statuses = append(m.Statuses, uint32(status))
	}
	return m
}

// scanFromWire decodes a scan.
func scanFromWire(m *node.PartitionScan) (*partition.Scan, error) {
	if m == nil {
		return nil, fmt.Errorf("malformed request: scan is missing")
	}
	s := &partition.Scan{
		Table: partition.Table(m.Table), Detail: partition.Detail(m.Detail), From: m.From,
		Keys:  partition.KeyRange{First: m.FirstKey, Last: m.LastKey},
		Scope: m.Scope, Services: m.Services, Objects: m.Objects, Handlers: m.Handlers, Ahead: m.Ahead, Strong: m.Strong,
		Events: m.Events,
	}
	if len(m.Id) != 0 {
		if len(m.Id) != len(s.ID) {
			return nil, fmt.Errorf("malformed scan: id has %d bytes", len(m.Id))
		}
		s.ID = ids.Invocation(m.Id)
	}
	for _, status := range m.Statuses {
		s.Statuses = append(s.Statuses, machine.Status(status))
	}
	return s, nil
}

func rowToWire(t partition.Table, r *partition.Row) (m *node.PartitionRow, err error) {
	m = &node.PartitionRow{Index: r.Index, Value: r.Value, Size: uint64(r.Size), Since: r.Since, Ahead: r.Ahead}
	if !r.ID.IsZero() {
		m.Id = r.ID[:]
	}
	if r.Key != "" {
		m.Key = []byte(r.Key) // may not be valid UTF-8, as protobuf strings must be
	}
	switch t {
	case partition.Invocations:
		m.Record, err = recordToWire(r.Record)
		for i := range r.Events {
			m.Events = append(m.Events, codec.AppendEvent(nil, &r.Events[i]))
		}
	case partition.Journal:
		m.Entry = codec.AppendEntry(make([]byte, 0, codec.EntrySize(&r.Entry)), &r.Entry)
	case partition.Queues, partition.LockQueues:
		m.Queue = queueToWire(r.Queue)
	case partition.Usages:
		m.Usage = usageToWire(r.Usage)
	default:
		m.Object = &node.StateObject{Scope: r.Object.Scope, Service: r.Object.Service, Key: r.Object.Key}
	}
	if t == partition.Promises {
		m.Promise = codec.AppendPromise(nil, r.Promise)
	}
	return m, err
}

func eventsFromWire(encoded [][]byte) (events []machine.Event, err error) {
	for _, b := range encoded {
		e, err := codec.DecodeEvent(b)
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func rowFromWire(m *node.PartitionRow) (r partition.Row, err error) {
	r = partition.Row{Index: m.Index, Key: string(m.Key), Value: m.Value, Size: int(m.Size), Since: m.Since, Ahead: m.Ahead}
	if len(m.Id) != 0 {
		if len(m.Id) != len(r.ID) {
			return r, fmt.Errorf("malformed row: id has %d bytes", len(m.Id))
		}
		r.ID = ids.Invocation(m.Id)
	}
	if o := m.Object; o != nil {
		r.Object = machine.Object{Scope: o.Scope, Service: o.Service, Key: o.Key}
	}
	switch {
	case m.Record != nil:
		if r.Record, err = recordFromWire(m.Record); err == nil {
			r.Events, err = eventsFromWire(m.Events)
		}
	case len(m.Entry) > 0:
		r.Entry, err = codec.DecodeEntry(m.Entry)
	case len(m.Promise) > 0:
		r.Promise, err = codec.DecodePromise(m.Promise)
	case m.Queue != nil:
		r.Queue, err = queueFromWire(m.Queue)
	case m.Usage != nil:
		r.Usage, err = usageFromWire(m.Usage)
	}
	return r, err
}
