package fabric

import (
	"context"
	"fmt"

	"platform/internal/ids"
	"platform/partition"
	"platform/partition/listing"
	"platform/partition/machine"
	"platform/proto/node"
)

// List implements Replica.
func (h *Handle) List(ctx context.Context, q *partition.List) (partition.Listed, error) {
	if p := h.localLeader(); p != nil {
		if out, err := p.List(ctx, q); err == nil || !canRetryElsewhere(err) {
			return out, err
		}
	}
	return onLeader(ctx, h, func(r Replica) (partition.Listed, error) { return r.List(ctx, q) })
}

// List implements Replica.
func (r *Remote) List(ctx context.Context, q *partition.List) (partition.Listed, error) {
	m, err := r.roundTrip(ctx, &node.PartitionRequest{Method: node.PartitionMethod_PARTITION_METHOD_LIST, List: listToWire(q)})
	if err != nil {
		return partition.Listed{}, err
	}
	out, err := listedFromWire(m.Listed)
	if err != nil {
		return out, r.decodeError(err)
	}
	return out, nil
}

// list executes a list request on this node's replica.
func list(ctx context.Context, p Local, req *node.PartitionRequest, r *node.PartitionResponse) error {
	q, err := listFromWire(req.List)
	if err != nil {
		return err
	}
	out, err := p.List(ctx, q)
	if err != nil {
		return err
	}
	r.Listed, err = listedToWire(&out)
	return err
}

func listToWire(q *partition.List) *node.PartitionList {
	m := &node.PartitionList{
		Kind: uint32(q.Kind), Filter: filterToWire(&q.Filter), ByModified: q.Order.ByModified, OldestFirst: q.Order.OldestFirst,
		Limit: uint64(q.Limit), Partial: q.Partial,
	}
	if q.After != nil {
		m.After = placeToWire(*q.After)
	}
	for i := range q.IDs {
		m.Ids = append(m.Ids, q.IDs[i][:])
	}
	return m
}

func listFromWire(m *node.PartitionList) (*partition.List, error) {
	if m == nil {
		return nil, fmt.Errorf("malformed request: list is missing")
	}
	q := &partition.List{
		Kind: partition.ListKind(m.Kind), Order: listing.Order{ByModified: m.ByModified, OldestFirst: m.OldestFirst},
		Limit: int(min(m.Limit, 1<<30)), Partial: m.Partial,
	}
	var err error
	if q.Filter, err = filterFromWire(m.Filter); err != nil {
		return nil, err
	}
	if m.After != nil {
		after, err := placeFromWire(m.After)
		if err != nil {
			return nil, err
		}
		q.After = &after
	}
	for _, b := range m.Ids {
		id, err := idFromWire(b)
		if err != nil {
			return nil, err
		}
		q.IDs = append(q.IDs, id)
	}
	return q, nil
}

func filterToWire(f *listing.Filter) *node.PartitionListFilter {
	m := &node.PartitionListFilter{
		Statuses: converted(f.Statuses, number[listing.Status]), Results: converted(f.Results, number[listing.Result]),
		Services: f.Services, Handlers: f.Handlers, Keys: converted(f.Keys, toBytes), Scopes: converted(f.Scopes, toBytes),
		LimitKeys: converted(f.LimitKeys, toBytes), IdempotencyKeys: converted(f.IdempotencyKeys, toBytes), ErrorCodes: converted(f.ErrorCodes, toBytes),
		Deployments: converted(f.Deployments, func(d ids.Deployment) string { return string(d) }), Sources: converted(f.Sources, number[machine.SourceKind]),
		CreatedFrom: f.Created.From, CreatedBefore: f.Created.Before, ModifiedFrom: f.Modified.From, ModifiedBefore: f.Modified.Before,
		CompletedFrom: f.Completed.From, CompletedBefore: f.Completed.Before,
	}
	if !f.Group.IsZero() {
		m.Group = f.Group[:]
	}
	return m
}

func filterFromWire(m *node.PartitionListFilter) (f listing.Filter, err error) {
	if m == nil {
		return f, nil
	}
	for _, n := range m.Statuses {
		if n >= uint32(listing.Statuses) {
			return f, fmt.Errorf("malformed list: unknown status %d", n)
		}
	}
	if len(m.Group) != 0 && len(m.Group) != len(f.Group) {
		return f, fmt.Errorf("malformed list: group has %d bytes", len(m.Group))
	}
	f = listing.Filter{
		Statuses: converted(m.Statuses, enum[listing.Status]), Results: converted(m.Results, enum[listing.Result]),
		Services: m.Services, Handlers: m.Handlers, Keys: converted(m.Keys, toString), Scopes: converted(m.Scopes, toString),
		LimitKeys: converted(m.LimitKeys, toString), IdempotencyKeys: converted(m.IdempotencyKeys, toString), ErrorCodes: converted(m.ErrorCodes, toString),
		Deployments: converted(m.Deployments, func(d string) ids.Deployment { return ids.Deployment(d) }), Sources: converted(m.Sources, enum[machine.SourceKind]),
		Created: listing.Range{From: m.CreatedFrom, Before: m.CreatedBefore}, Modified: listing.Range{From: m.ModifiedFrom, Before: m.ModifiedBefore},
		Completed: listing.Range{From: m.CompletedFrom, Before: m.CompletedBefore},
	}
	copy(f.Group[:], m.Group)
	return f, nil
}

// converted applies f to each element; nil for none.
func converted[From, To any](list []From, f func(From) To) []To {
	if len(list) == 0 {
		return nil
	}
	out := make([]To, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

func number[T ~uint8](v T) uint32 { return uint32(v) }
func enum[T ~uint8](n uint32) T   { return T(min(n, 255)) }
func toBytes(s string) []byte     { return []byte(s) }
func toString(b []byte) string    { return string(b) }

func placeToWire(p listing.Place) *node.PartitionPlace {
	return &node.PartitionPlace{At: p.At, Id: p.ID[:]}
}

func placeFromWire(m *node.PartitionPlace) (p listing.Place, err error) {
	p.At = m.At
	p.ID, err = idFromWire(m.Id)
	return p, err
}

func idFromWire(b []byte) (id ids.Invocation, err error) {
	if len(b) != len(id) {
		return id, fmt.Errorf("malformed list: id has %d bytes", len(b))
	}
	return ids.Invocation(b), nil
}

func listedToWire(out *partition.Listed) (*node.PartitionListed, error) {
	m := &node.PartitionListed{Other: uint64(out.Other), CompleteFrom: out.CompleteFrom, Places: converted(out.Places, placeToWire)}
	for _, r := range out.Records {
		record, err := recordToWire(r)
		if err != nil {
			return nil, err
		}
		m.Records = append(m.Records, record)
	}
	for i := range out.Counts {
		c := &out.Counts[i]
		m.Counts = append(m.Counts, &node.PartitionListCount{
			Service: c.Service, Handler: c.Handler, ByStatus: numbersToWire(c.ByStatus[:]), ByResult: numbersToWire(c.ByResult[:]),
		})
	}
	for i := range out.Groups {
		g := &out.Groups[i]
		m.Groups = append(m.Groups, &node.PartitionFailureGroup{
			Id: g.ID[:], Service: g.Service, Handler: g.Handler, Code: g.Code, ErrorCode: g.ErrorCode, Message: g.Message,
			Count: uint64(g.Count), ByStatus: numbersToWire(g.ByStatus[:]), Keys: uint64(g.Keys), FirstSeen: g.FirstSeen, LastSeen: g.LastSeen,
			Sample: g.Sample[:], Deployments: converted(g.Deployments, func(d ids.Deployment) string { return string(d) }),
		})
	}
	return m, nil
}

func listedFromWire(m *node.PartitionListed) (out partition.Listed, err error) {
	if m == nil {
		return out, fmt.Errorf("malformed response: list is missing")
	}
	out.Other, out.CompleteFrom = int(m.Other), m.CompleteFrom
	for _, p := range m.Places {
		place, err := placeFromWire(p)
		if err != nil {
			return out, err
		}
		out.Places = append(out.Places, place)
	}
	for _, r := range m.Records {
		record, err := recordFromWire(r)
		if err != nil {
			return out, err
		}
		out.Records = append(out.Records, record)
	}
	for _, c := range m.Counts {
		count := listing.Count{Service: c.Service, Handler: c.Handler}
		numbersFromWire(count.ByStatus[:], c.ByStatus)
		numbersFromWire(count.ByResult[:], c.ByResult)
		out.Counts = append(out.Counts, count)
	}
	for _, g := range m.Groups {
		group, err := groupFromWire(g)
		if err != nil {
			return out, err
		}
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

func groupFromWire(m *node.PartitionFailureGroup) (g listing.Group, err error) {
	if len(m.Id) != len(g.ID) {
		return g, fmt.Errorf("malformed group: id has %d bytes", len(m.Id))
	}
	g = listing.Group{
		ID: listing.GroupID(m.Id), Service: m.Service, Handler: m.Handler, Code: m.Code, ErrorCode: m.ErrorCode, Message: m.Message,
		Count: int(m.Count), Keys: int(m.Keys), FirstSeen: m.FirstSeen, LastSeen: m.LastSeen,
		Deployments: converted(m.Deployments, func(d string) ids.Deployment { return ids.Deployment(d) }),
	}
	numbersFromWire(g.ByStatus[:], m.ByStatus)
	g.Sample, err = idFromWire(m.Sample)
	return g, err
}

func numbersToWire(list []int) []uint64 {
	return converted(list, func(n int) uint64 { return uint64(n) })
}

// numbersFromWire fills into, as far as the message has numbers.
func numbersFromWire(into []int, list []uint64) {
	for i := range min(len(into), len(list)) {
		into[i] = int(list[i])
	}
}
