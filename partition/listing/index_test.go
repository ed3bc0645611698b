package listing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"platform/internal/ids"
	"platform/internal/target"
	"platform/partition/journal"
	"platform/partition/machine"
)

func idOf(n int) ids.Invocation {
	return ids.NewInvocation(uint64(n%7), [16]byte{byte(n), byte(n >> 8), byte(n >> 16)})
}

// liveOf is what the leader would know of an invocation's attempts.
func liveOf(id ids.Invocation) Live {
	switch id[8] % 4 {
	case 0:
		return Live{Status: Ready}
	case 1:
		return Live{Status: Running}
	case 2:
		return Live{Status: BackingOff, At: 50, Failure: &machine.AttemptFailure{Code: 500, ErrorCode: "RT0007", Message: "boom 7"}}
	}
	return Live{Status: Running, At: 60, Failure: &machine.AttemptFailure{Code: 500, Message: "cannot serve k1"}}
}

func drawInvocation(t *rapid.T) *machine.Invocation {
	text := func(name string, choice ...string) string { return rapid.SampledFrom(choice).Draw(t, name) }
	time := rapid.Int64Range(1, 12)
	inv := &machine.Invocation{
		ID: idOf(rapid.IntRange(0, 60).Draw(t, "id")), Status: machine.Status(rapid.IntRange(1, 6).Draw(t, "status")),
		Target: machine.Target{
			Service: text("service", "A", "B"), Handler: text("handler", "g", "h"), Scope: text("scope", "", "s"), Key: text("key", "", "k1", "k2"),
			Type: rapid.SampledFrom([]target.Type{target.Service, target.ObjectExclusive, target.StateUpdate}).Draw(t, "type"),
		},
		Source:   machine.Source{Kind: machine.SourceKind(rapid.IntRange(0, 3).Draw(t, "source"))},
		LimitKey: text("limit", "", "l"), CreatedAt: time.Draw(t, "created"), ModifiedAt: time.Draw(t, "modified"),
		Pin: machine.Pin{Deployment: ids.Deployment(text("deployment", "", "dp_1", "dp_2"))},
	}
	for _, cause := range rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 0, 3, rapid.ID[int]).Draw(t, "causes") {
		known := []string{"no stock for k1", "code 12", "boom 7", "cannot serve k1"}[cause]
		inv.Causes = append(inv.Causes, machine.Cause{ID: CauseOf(500, known, inv.Target.Key), Since: time.Draw(t, "since")})
	}
	if rapid.Bool().Draw(t, "idempotent") {
		inv.IdempotencyKey = new(text("idempotency", "", "i"))
	}
	message := text("message", "no stock for k1", "no stock for k2", "code 12", "code 13", machine.KilledMessage)
	number := rapid.SampledFrom([]uint32{409, 500}).Draw(t, "code")
	switch {
	case inv.Status == machine.Completed:
		inv.CompletedAt, inv.Result = inv.ModifiedAt, &journal.Result{}
		if rapid.Bool().Draw(t, "failed") {
			inv.Result.Failure = &journal.Failure{Code: number, Message: message}
			inv.Killed = rapid.Bool().Draw(t, "killed")
			inv.CancelRequestedAt = rapid.Int64Range(0, 1).Draw(t, "cancelled")
		}
	case inv.Status == machine.Paused && rapid.Bool().Draw(t, "after failure"):
		inv.Failure = &machine.AttemptFailure{Code: number, ErrorCode: text("catalogue", "", "RT0007"), Message: message}
	}
	return inv
}

func drawFilter(t *rapid.T, groups []GroupID) Filter {
	list := func(name string, choice ...string) (out []string) {
		if rapid.IntRange(0, 3).Draw(t, name+"?") > 0 {
			return nil
		}
		return rapid.SliceOfNDistinct(rapid.SampledFrom(choice), 1, 2, rapid.ID[string]).Draw(t, name)
	}
	span := func(name string) (r Range) {
		if rapid.IntRange(0, 3).Draw(t, name+"?") == 0 {
			r = Range{rapid.Int64Range(0, 12).Draw(t, name+" from"), rapid.Int64Range(0, 13).Draw(t, name+" before")}
		}
		return r
	}
	f := Filter{
		Services: list("services", "A", "C"), Handlers: list("handlers", "g", "h"), Keys: list("keys", "", "k1"), Scopes: list("scopes", "", "s"),
		LimitKeys: list("limits", "", "l", "x"), IdempotencyKeys: list("idempotency keys", "", "i"), ErrorCodes: list("codes", "RT0007", "500", "409"),
		Created: span("created range"), Modified: span("modified range"), Completed: span("completed range"),
	}
	for _, d := range list("deployments", "dp_1", "dp_3") {
		f.Deployments = append(f.Deployments, ids.Deployment(d))
	}
	for _, s := range list("statuses", "2", "3", "4", "5", "7", "8") {
		n, _ := strconv.Atoi(s)
		f.Statuses = append(f.Statuses, Status(n))
	}
	for _, s := range list("results", "1", "2", "3", "4") {
		n, _ := strconv.Atoi(s)
		f.Results = append(f.Results, Result(n))
	}
	for _, s := range list("sources", "0", "1", "2") {
		n, _ := strconv.Atoi(s)
		f.Sources = append(f.Sources, machine.SourceKind(n))
	}
	if len(groups) > 0 && rapid.IntRange(0, 3).Draw(t, "group?") == 0 {
		f.Group = rapid.SampledFrom(groups).Draw(t, "group")
	}
	return f
}

// model is the records of which an index holds the columns.
type model map[ids.Invocation]*machine.Invocation

func (m model) check(t require.TestingT, x *Index, f *Filter, order Order, after *Place, limit int) {
	want, got := NewTop(order, after, 1000), NewTop(order, after, 1000)
	var counted, expected Tally
	var failures, grouped Groups
	for _, inv := range m {
		live := liveOf(inv.ID)
		if f.Match(inv, live) {
			want.Add(order.PlaceOf(inv))
			grouped.Add(inv, live)
		}
		expected.Add(f, inv, live)
	}
	x.Select(f, got, liveOf)
	places := slices.DeleteFunc(got.Places(), func(p Place) bool { return !f.Match(m[p.ID], liveOf(p.ID)) })
	require.True(t, slices.Equal(want.Places(), places), "want %v, got %v", want.Places(), places)
	first := NewTop(order, after, limit)
	for _, p := range want.Places() {
		first.Add(p)
	}
	require.Equal(t, want.Places()[:min(limit, len(want.Places()))], first.Places()[:min(limit, len(want.Places()))])

	x.Count(f, &counted, liveOf, func(id ids.Invocation) { counted.Add(f, m[id], liveOf(id)) })
	require.Equal(t, expected.Result(), counted.Result())

	x.Failures(f, &failures, liveOf, func(id ids.Invocation, live Live) {
		if f.Match(m[id], live) {
			failures.Add(m[id], live)
		}
	})
	if f.Group.IsZero() {
		wantGroups, _ := grouped.Result()
		gotGroups, _ := failures.Result()
		require.Equal(t, wantGroups, gotGroups)
	}
}

func TestIndexAgreesWithRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, x := model{}, New(1<<30)
		var groups []GroupID
		for range rapid.IntRange(1, 80).Draw(t, "changes") {
			if rapid.IntRange(0, 4).Draw(t, "delete?") == 0 {
				id := idOf(rapid.IntRange(0, 60).Draw(t, "deleted"))
				delete(m, id)
				x.Delete(id)
				continue
			}
			inv := drawInvocation(t)
			if old := m[inv.ID]; old != nil {
				inv.Target = old.Target // an invocation keeps its target
			}
			if m[inv.ID] = inv; !isListed(inv) {
				delete(m, inv.ID)
			}
			x.Put(inv)
			if f := failureOf(inv, Live{}); f != nil {
				groups = append(groups, groupOf(inv, f).ID())
			}
		}
		require.Equal(t, len(m), x.Len())
		f := drawFilter(t, groups)
		order := Order{rapid.Bool().Draw(t, "by modified"), rapid.Bool().Draw(t, "oldest first")}
		var after *Place
		if rapid.Bool().Draw(t, "continued") {
			after = &Place{rapid.Int64Range(1, 12).Draw(t, "after"), idOf(rapid.IntRange(0, 60).Draw(t, "after id"))}
		}
		m.check(t, x, &f, order, after, rapid.IntRange(1, 10).Draw(t, "limit"))
		m.check(t, x, &Filter{}, order, after, 10)
	})
}

// numbered makes invocations with distinct times.
func numbered(n int, status machine.Status) *machine.Invocation {
	inv := &machine.Invocation{
		ID: idOf(n), Status: status, CreatedAt: int64(n + 1), ModifiedAt: int64(n + 1),
		Target: machine.Target{Service: "S", Key: fmt.Sprint("k", n), Handler: "h", Type: target.ObjectExclusive},
	}
	if status == machine.Completed {
		inv.CompletedAt, inv.Result = inv.ModifiedAt, &journal.Result{}
	}
	return inv
}

// Rows come and go across the edges of chunks, and the table grows and shrinks.
func TestRowsOfManyChunks(t *testing.T) {
	m, x := model{}, New(1<<30)
	for n := range 5*chunkRows + 10 {
		inv := numbered(n, machine.Status(1+n%int(machine.Completed)))
		inv.ModifiedAt = int64(6*chunkRows - n)
		if inv.Status == machine.Completed && n%5 == 0 {
			inv.Result.Failure = &journal.Failure{Code: 500, Message: "broken"}
		}
		x.Put(inv)
		if n%3 == 0 {
			m[inv.ID] = inv
		}
	}
	for n := range 5*chunkRows + 10 {
		if n%3 != 0 {
			x.Delete(idOf(n))
			x.Delete(idOf(n)) // repeated
		}
	}
	require.Equal(t, len(m), x.Len())
	for _, order := range []Order{{}, {OldestFirst: true}, {ByModified: true}, {ByModified: true, OldestFirst: true}} {
		m.check(t, x, &Filter{}, order, nil, 10)
		m.check(t, x, &Filter{}, order, &Place{At: 3 * chunkRows}, 10)
		m.check(t, x, &Filter{Statuses: []Status{Running, BackingOff, Completed}, Handlers: []string{"h"}}, order, nil, 10)
		top, all := NewTop(order, nil, 30), NewTop(order, nil, len(m))
		x.Select(&Filter{}, top, liveOf)
		for _, inv := range m {
			all.Add(order.PlaceOf(inv))
		}
		require.Equal(t, all.Places()[:30], top.Places())
	}
	var page []Place
	for after := (*Place)(nil); ; {
		top := NewTop(Order{OldestFirst: true}, after, 100)
		x.Select(&Filter{}, top, liveOf)
		places := top.Places()
		if len(places) == 0 {
			break
		}
		page = append(page, places...)
		after = &page[len(page)-1]
	}
	require.Len(t, page, len(m))
	require.True(t, slices.IsSortedFunc(page, Order{OldestFirst: true}.Compare))
}

func TestFullIndexLeavesOldestCompletedOut(t *testing.T) {
	limit := 6 * chunkBytes
	x := New(limit)
	m := model{}
	const many = 20 * chunkRows
	for n := range many {
		status := machine.Completed
		if n%50 == 0 {
			status = machine.Suspended
		}
		inv := numbered(n, status)
		m[inv.ID] = inv
		x.Put(inv)
		require.LessOrEqual(t, x.Bytes(), limit)
	}
	require.Zero(t, x.from)
	complete := x.CompleteFrom()
	require.Positive(t, complete)
	require.Greater(t, x.Len(), 2*chunkRows)
	recent := Filter{Created: Range{From: complete}}
	for id, inv := range m {
		if inv.CreatedAt < complete && inv.Status == machine.Completed {
			delete(m, id)
		}
	}
	m.check(t, x, &recent, Order{}, nil, 10)
	require.Len(t, m, x.Len(), "those that have not completed are all listed")
	old := numbered(50, machine.Completed)
	x.Put(old)
	require.Equal(t, len(m)-1, x.Len(), "completed now, and too old")

	x.SetLimit(2*chunkBytes + 4*smallestTable)
	require.LessOrEqual(t, x.Bytes(), x.limit)
}

func TestFullIndexLeavesOldestOutIfNoneIsCompleted(t *testing.T) {
	x := New(4 * chunkBytes)
	for n := range 10 * chunkRows {
		x.Put(numbered(n, machine.Scheduled))
		require.LessOrEqual(t, x.Bytes(), x.limit)
	}
	require.Positive(t, x.CompleteFrom())
	top := NewTop(Order{}, nil, 10)
	x.Select(&Filter{}, top, liveOf)
	require.Equal(t, idOf(10*chunkRows-1), top.Places()[0].ID)
}

func TestUnusedValuesAreForgotten(t *testing.T) {
	x := New(1 << 30)
	empty := x.targets.bytes + x.groups.bytes + x.limits.bytes
	for round := range 3 {
		for n := range 3000 {
			inv := numbered(n, machine.Completed)
			inv.Target.Service, inv.LimitKey = fmt.Sprint("S", round, n), fmt.Sprint("l", n)
			inv.Result.Failure = &journal.Failure{Code: 500, Message: "broken"}
			x.Put(inv)
		}
		require.Equal(t, MaxGroups, x.groups.len(), "bounded")
	}
	for n := range 3000 {
		x.Delete(idOf(n))
	}
	require.Equal(t, empty, x.targets.bytes+x.groups.bytes+x.limits.bytes)
	require.Less(t, len(x.targets.values), 6002)
}

func TestGroupsBeyondTheLimitAreCounted(t *testing.T) {
	x := New(1 << 30)
	m := model{}
	for n := range MaxGroups + 20 {
		inv := numbered(n, machine.Completed)
		inv.Target.Service = fmt.Sprint("S", n)
		inv.Result.Failure = &journal.Failure{Code: 500, Message: "broken"}
		x.Put(inv)
		m[inv.ID] = inv
	}
	var g Groups
	x.Failures(&Filter{}, &g, liveOf, nil)
	groups, other := g.Result()
	require.Len(t, groups, MaxGroups)
	require.Equal(t, 20, other)
	last := m[idOf(MaxGroups+10)]
	f := Filter{Group: groupOf(last, failureOf(last, Live{})).ID()}
	m.check(t, x, &f, Order{}, nil, 10)
}

func TestGroupsOfPartitionsAreMerged(t *testing.T) {
	group := func(id byte, count int, first, last int64, d ...ids.Deployment) Group {
		return Group{ID: GroupID{id}, Count: count, FirstSeen: first, LastSeen: last, Sample: idOf(int(last)), Deployments: d, Keys: 1}
	}
	groups, other := MergeGroups([]Group{group(1, 2, 5, 9, "b"), group(2, 1, 1, 20)}, []Group{group(1, 3, 4, 8, "a", "b")})
	require.Zero(t, other)
	require.Equal(t, []Group{
		group(2, 1, 1, 20),
		{ID: GroupID{1}, Count: 5, FirstSeen: 4, LastSeen: 9, Sample: idOf(9), Keys: 2, Deployments: []ids.Deployment{"a", "b"}},
	}, groups)
	var many []Group
	for n := range MaxGroups + 5 {
		many = append(many, Group{ID: GroupID{byte(n), byte(n >> 8)}, Count: 2, LastSeen: int64(n)})
	}
	groups, other = MergeGroups(many)
	require.Len(t, groups, MaxGroups)
	require.Equal(t, 10, other)
}

// TestTimesOfAGroupDoNotDependOnTheOrder adds members with the values that stand for nothing
// elsewhere: the zero ID and the time 0.
func TestTimesOfAGroupDoNotDependOnTheOrder(t *testing.T) {
	members := []member{{first: 6, at: 6}, {id: idOf(1), at: 0}, {id: idOf(2), first: 3, at: 3}}
	for _, order := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}} {
		var g groupTally
		for _, i := range order {
			g.add(members[i])
		}
		require.EqualValues(t, 0, g.FirstSeen, order)
		require.EqualValues(t, 6, g.LastSeen, order)
		require.Equal(t, members[0].id, g.Sample, order)
	}
}

// TestAGroupBeganWithTheFirstFailureOfItsCause has invocations whose attempts failed for the
// same cause before.
func TestAGroupBeganWithTheFirstFailureOfItsCause(t *testing.T) {
	failing := func(n int, status machine.Status) *machine.Invocation {
		inv := numbered(n, status)
		inv.Target.Key = "k1"
		inv.ModifiedAt, inv.CompletedAt, inv.Result = 90, 0, nil
		inv.Causes = []machine.Cause{{ID: CauseOf(500, "no stock for k1, attempt 1", "k1"), Since: 20}, {ID: CauseOf(500, "no route", "k1"), Since: 10}}
		return inv
	}
	message := "no stock for k1, attempt 9"
	paused, completed, invoked := failing(1, machine.Paused), failing(2, machine.Completed), failing(3, machine.Invoked)
	paused.Failure = &machine.AttemptFailure{Code: 500, ErrorCode: "RT0007", Message: message}
	completed.CompletedAt, completed.Result = 90, &journal.Result{Failure: &journal.Failure{Code: 500, Message: message}}
	live := Live{Status: BackingOff, At: 90, Failure: &machine.AttemptFailure{Code: 500, ErrorCode: "RT0007", Message: message}}
	for name, c := range map[string]struct {
		inv         *machine.Invocation
		first, last int64
		change      func(*machine.Invocation)
	}{
		"paused":                      {inv: paused, first: 20, last: 90},
		"completed":                   {inv: completed, first: 20, last: 90},
		"backing off":                 {inv: invoked, first: 20, last: 90},
		"of a release without causes": {inv: paused, first: 90, last: 90, change: func(inv *machine.Invocation) { inv.Causes = nil }},
		"with another cause before":   {inv: completed, first: 90, last: 90, change: func(inv *machine.Invocation) { inv.Causes = inv.Causes[1:] }},
		"recorded after the last start": {inv: completed, first: 90, last: 90, change: func(inv *machine.Invocation) {
			inv.Causes = []machine.Cause{{ID: inv.Causes[0].ID, Since: 91}}
		}},
	} {
		inv := *c.inv
		if c.change != nil {
			c.change(&inv)
		}
		x := New(1 << 20)
		x.Put(numbered(7, machine.Scheduled))
		x.Put(&inv)
		x.Delete(idOf(7)) // moves the row
		var g Groups
		x.Failures(&Filter{}, &g, func(ids.Invocation) Live { return live }, func(_ ids.Invocation, l Live) { g.Add(&inv, l) })
		groups, _ := g.Result()
		require.Len(t, groups, 1, name)
		require.Equal(t, c.first, groups[0].FirstSeen, name)
		require.Equal(t, c.last, groups[0].LastSeen, name)
	}
}

func TestGroupIDsRoundTrip(t *testing.T) {
	id := groupKey{service: "S", handler: "h", code: code{500, "RT0007"}, message: "m"}.ID()
	parsed, err := ParseGroup(id.String())
	require.NoError(t, err)
	require.Equal(t, id, parsed)
	for _, bad := range []string{"", "fg_", "fg_12", "fg_00000000000000zz", "xx_0000000000000000", "fg_00000000000000AB", GroupID{}.String()} {
		_, err := ParseGroup(bad)
		require.Error(t, err, bad)
	}
	require.NotEqual(t, groupKey{service: "a", handler: "b"}.ID(), groupKey{service: "ab"}.ID())
}

func TestLongMessagesOfGroupsEndWithAnEllipsis(t *testing.T) {
	long := machine.Invocation{
		Target: machine.Target{Service: "S", Handler: "h"}, Status: machine.Completed,
		Result: &journal.Result{Failure: &journal.Failure{Code: 500, Message: strings.Repeat("no stock ", 50)}},
	}
	var g Groups
	g.Add(&long, Live{})
	groups, _ := g.Result()
	require.Len(t, groups, 1)
	require.Equal(t, strings.Repeat("no stock ", 22)+"no…", groups[0].Message)
	k := groupOf(&long, failureOf(&long, Live{}))
	k.more = false
	require.Equal(t, groups[0].ID, k.ID(), "the ellipsis is not part of the identity")
}
