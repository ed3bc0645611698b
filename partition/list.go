package partition

import (
	"context"
	"fmt"

	"platform/internal/ids"
	"platform/partition/attempts"
	"platform/partition/journal"
	"platform/partition/listing"
	"platform/partition/machine"
	"platform/partition/store"
)

// ListKind is what a List requests.
type ListKind uint8

// The kinds. Their numbers are part of the node protocol.
const (
	ListPlaces   ListKind = iota + 1 // the first places of a sorted list
	ListRecords                      // the records of places
	ListCounts                       // numbers of invocations
	ListFailures                     // failure groups
)

// List selects invocations by the index of a partition.
type List struct {
	Kind   ListKind
	Filter listing.Filter
	Order  listing.Order    // ListPlaces
	After  *listing.Place   // ListPlaces: only places after it; nil: all
	Limit  int              // ListPlaces
	IDs    []ids.Invocation // ListRecords
	// Partial accepts places from an index that has left out old invocations. Without it, all
	// records are read if necessary.
	Partial bool
}

// Listed is the response to a List. Its times are wall-clock times, except for the places of lists that
// begin with the oldest.
type Listed struct {
	Places  []listing.Place // sorted; some may not match the filter, which ListRecords finds out
	Records []Record        // of the requested IDs that match the filter; without values of results
	Counts  []listing.Count
	Groups  []listing.Group
	Other   int // failures that belong to no group
	// CompleteFrom is the creation time from which on the response is complete; 0: it is
	// complete.
	CompleteFrom int64
}

const (
	// maxListLimit bounds the places and the IDs of a List.
	maxListLimit = 1001
	// maxLiveFailures bounds the records that are read for failure groups, of invocations
	// that are backing off; the others are counted in Listed.Other.
	maxLiveFailures = 10_000
)

// List returns what q requests as of a moment that is at most an election timeout before the call. The first
// call builds the index, which takes a few seconds per million invocations.
func (p *Partition) List(ctx context.Context, q *List) (Listed, error) {
	l, err := p.leader()
	if err != nil {
		return Listed{}, err
	}
	if q.Limit < 0 || q.Limit > maxListLimit || len(q.IDs) > maxListLimit {
		return Listed{}, fmt.Errorf("list partition %d: more than %d invocations requested", p.id, maxListLimit)
	}
	r := listReader{l: l, q: q, offset: l.clock.Offset()}
	r.filter = q.Filter.Shifted(int64(r.offset))
	if err := r.run(ctx); err != nil {
		return Listed{}, fmt.Errorf("list partition %d: %w", p.id, err)
	}
	if err := l.verify(ctx, leased); err != nil {
		return Listed{}, err
	}
	return r.out, nil
}

// listReader serves one List.
type listReader struct {
	l      *leadership
	q      *List
	filter listing.Filter // in partition time
	offset clockOffset
	out    Listed
}

func (r *listReader) run(ctx context.Context) error {
	switch r.q.Kind {
	case ListPlaces:
		return r.places(ctx)
	case ListRecords:
		return r.records(ctx)
	case ListCounts:
		return r.counts(ctx)
	case ListFailures:
		return r.failures(ctx)
	}
	return fmt.Errorf("unknown kind of list %d; upgrade the server on this node", r.q.Kind)
}

// live implements listing.LiveFunc.
func (r *listReader) live(id ids.Invocation) listing.Live {
	st, known := r.l.p.cfg.Invoker.Status(id)
	if !known {
		return LiveOf(nil)
	}
	live := LiveOf(&st)
	if live.Failure != nil {
		live.At = r.offset.toPartition(live.At)
	}
	return live
}

// LiveOf returns what lists show of the attempts of an invocation; st is nil if no session runs or
// retries it. The time is a wall-clock time.
func LiveOf(st *attempts.Status) listing.Live {
	live := listing.Live{Status: listing.Ready}
	switch {
	case st == nil:
		return live
	case st.InFlight:
		live.Status = listing.Running
	case st.RetryCount > 0:
		live.Status = listing.BackingOff
	}
	if st.LastFailure != nil {
		live.Failure, live.At = st.LastFailure, st.FailedAt().UnixMilli()
	}
	return live
}

func (r *listReader) liveOf(inv *machine.Invocation) listing.Live {
	if inv.Status != machine.Invoked {
		return listing.Live{}
	}
	return r.live(inv.ID)
}

func (r *listReader) places(ctx context.Context) error {
	offset := r.offset
	if r.q.Order.OldestFirst { // whoever processes all of a list must miss none, and the offset changes between pages
		offset = 0
	}
	after := r.q.After
	if after != nil && offset != 0 {
		after = &listing.Place{At: offset.toPartition(after.At), ID: after.ID}
	}
	top := listing.NewTop(r.q.Order, after, r.q.Limit)
	var completeFrom int64
	err := r.l.lister.read(ctx, func(x *listing.Index) {
		x.Select(&r.filter, top, r.live)
		completeFrom = x.CompleteFrom()
	})
	if err != nil {
		return err
	}
	places := top.Places()
	if completeFrom != 0 && !r.covered(places, completeFrom) {
		if r.q.Partial {
			r.out.CompleteFrom = r.offset.toWall(completeFrom)
		} else if places, err = r.scan(ctx, listing.NewTop(r.q.Order, after, r.q.Limit)); err != nil {
			return err
		}
	}
	for i := range places {
		places[i].At = offset.toWall(places[i].At)
	}
	r.out.Places = places
	return nil
}

// covered reports whether no invocation that was left out of the index can be among the places.
func (r *listReader) covered(places []listing.Place, completeFrom int64) bool {
	if r.filter.Created.From >= completeFrom {
		return true
	}
	return r.q.Order == listing.Order{} && len(places) == r.q.Limit && places[len(places)-1].At >= completeFrom
}

// scan selects places from all records.
func (r *listReader) scan(ctx context.Context, top *listing.Top) ([]listing.Place, error) {
	err := eachPage(ctx, func(from store.Place) (store.Place, error) {
		return readPage(r.l.p.tables, from, true, func(inv *machine.Invocation) {
			if r.filter.Match(inv, r.liveOf(inv)) {
				top.Add(r.q.Order.PlaceOf(inv))
			}
		})
	})
	return top.Places(), err
}

// records reads the requested records.
func (r *listReader) records(ctx context.Context) error {
	view := r.l.p.tables.View()
	defer view.Close()
	for _, id := range r.q.IDs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		inv, err := view.Invocation(id)
		if err != nil {
			return err
		}
		if inv == nil || !r.filter.Match(inv, r.liveOf(inv)) {
			continue
		}
		if inv.Result != nil && inv.Result.Value != nil {
			inv.Result = &journal.Result{Failure: inv.Result.Failure}
		}
		r.offset.invocation(inv)
		r.out.Records = append(r.out.Records, r.l.p.record(inv))
	}
	return nil
}

func (r *listReader) counts(ctx context.Context) error {
	var t listing.Tally
	var unsure []ids.Invocation
	err := r.l.lister.read(ctx, func(x *listing.Index) {
		x.Count(&r.filter, &t, r.live, func(id ids.Invocation) { unsure = append(unsure, id) })
		r.completeFrom(x)
	})
	if err == nil {
		err = r.each(ctx, unsure, func(inv *machine.Invocation) { t.Add(&r.filter, inv, r.liveOf(inv)) })
	}
	r.out.Counts = t.Result()
	return err
}

func (r *listReader) completeFrom(x *listing.Index) {
	if from := x.CompleteFrom(); from != 0 && r.filter.Created.From < from {
		r.out.CompleteFrom = r.offset.toWall(from)
	}
}

func (r *listReader) failures(ctx context.Context) error {
	var g listing.Groups
	var live []ids.Invocation
	more := 0
	err := r.l.lister.read(ctx, func(x *listing.Index) {
		x.Failures(&r.filter, &g, r.live, func(id ids.Invocation, _ listing.Live) {
			if len(live) < maxLiveFailures {
				live = append(live, id)
			} else {
				more++
			}
		})
		r.completeFrom(x)
	})
	if err == nil {
		err = r.each(ctx, live, func(inv *machine.Invocation) {
			if l := r.liveOf(inv); r.filter.Match(inv, l) {
				g.Add(inv, l)
			}
		})
	}
	r.out.Groups, r.out.Other = g.Result()
	r.out.Other += more
	for i := range r.out.Groups {
		r.offset.times(&r.out.Groups[i].FirstSeen, &r.out.Groups[i].LastSeen)
	}
	return err
}

// each reads records.
func (r *listReader) each(ctx context.Context, list []ids.Invocation, visit func(*machine.Invocation)) error {
	view := r.l.p.tables.View()
	defer view.Close()
	for _, id := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		inv, err := view.Invocation(id)
		if err != nil {
			return err
		}
		if inv != nil {
			visit(inv)
		}
	}
	return nil
}
