package listing

import (
	"slices"
	"strconv"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/machine"
)

// Filter selects invocations. All conditions must hold; an empty list and the zero value of
// any other field is no condition.
type Filter struct {
	Statuses        []Status
	Results         []Result
	Services        []string
	Handlers        []string
	Keys            []string
	Scopes          []string
	LimitKeys       []string
	IdempotencyKeys []string
	ErrorCodes      []string         // catalogue codes such as RT0007, or numbers of failures such as 500
	Deployments     []ids.Deployment // pinned
	Sources         []machine.SourceKind
	Created         Range
	Modified        Range
	Completed       Range
	Group           GroupID
}

// Range is a range of times in milliseconds since 1970, From included, Before excluded. 0 is
// no bound.
type Range struct{ From, Before int64 }

func (r Range) has(t int64) bool {
	return (r.From == 0 || t >= r.From) && (r.Before == 0 || t != 0 && t < r.Before)
}

// isListed reports whether an invocation is listed at all: state updates by operators are
// stored like invocations.
func isListed(inv *machine.Invocation) bool { return inv.Target.Type != target.StateUpdate }

// Match reports whether the filter selects an invocation.
func (f *Filter) Match(inv *machine.Invocation, live Live) bool {
	t := &inv.Target
	return isListed(inv) && among(f.Statuses, StatusOf(inv, live)) && among(f.Results, resultOf(inv)) &&
		among(f.Services, t.Service) && among(f.Handlers, t.Handler) && among(f.Keys, t.Key) && among(f.Scopes, t.Scope) &&
		among(f.LimitKeys, inv.LimitKey) && among(f.Deployments, inv.Pin.Deployment) && among(f.Sources, inv.Source.Kind) &&
		(len(f.IdempotencyKeys) == 0 || inv.IdempotencyKey != nil && slices.Contains(f.IdempotencyKeys, *inv.IdempotencyKey)) &&
		f.Created.has(inv.CreatedAt) && f.Modified.has(inv.ModifiedAt) && f.Completed.has(inv.CompletedAt) &&
		f.matchFailure(inv, live)
}

func (f *Filter) matchFailure(inv *machine.Invocation, live Live) bool {
	if len(f.ErrorCodes) == 0 && f.Group.IsZero() {
		return true
	}
	current := failureOf(inv, live)
	if current == nil || !f.wantsCode(current.code) {
		return false
	}
	return f.Group.IsZero() || grouped(inv) && groupOf(inv, current).ID() == f.Group
}

// wantsCode reports whether the filter selects failures with a code.
func (f *Filter) wantsCode(c code) bool {
	return len(f.ErrorCodes) == 0 || c.catalogue != "" && slices.Contains(f.ErrorCodes, c.catalogue) ||
		slices.Contains(f.ErrorCodes, strconv.FormatUint(uint64(c.number), 10))
}

// among reports whether list contains v; an empty list contains everything.
func among[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// Shifted returns the filter with by added to all times.
func (f Filter) Shifted(by int64) Filter {
	for _, r := range []*Range{&f.Created, &f.Modified, &f.Completed} {
		if r.From != 0 {
			r.From = max(1, r.From+by)
		}
		if r.Before != 0 {
			r.Before = max(1, r.Before+by)
		}
	}
	return f
}
