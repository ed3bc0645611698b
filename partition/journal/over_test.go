package journal

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"platform/proto/service"
)

func fromHexSeed(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// outcomes are the states by completion ID; a missing one is pending.
type outcomes map[uint32]Settled

func (o outcomes) of(id NotificationID) Settled { return o[id.Index] }

func node(c Combinator, leaves []uint32, nested ...Future) Future {
	return Future{Combinator: c, Completions: leaves, Nested: nested}
}

func TestWakeUpRule(t *testing.T) {
	const (
		unknown  = CombineUnknown
		first    = CombineFirstCompleted
		all      = CombineAllCompleted
		anyOK    = CombineFirstSucceededOrAllFailed
		allOK    = CombineAllSucceededOrFirstFailed
		ok, fail = Succeeded, Failed
	)
	leaves := []uint32{1, 2}
	for name, c := range map[string]struct {
		f    Future
		with outcomes
		over bool
	}{
		"first: nothing":                   {node(first, leaves), nil, false},
		"first: success":                   {node(first, leaves), outcomes{2: ok}, true},
		"first: failure":                   {node(first, leaves), outcomes{1: fail}, true},
		"unknown: nothing":                 {node(unknown, leaves), nil, false},
		"unknown: one":                     {node(unknown, leaves), outcomes{2: fail}, true},
		"later combinator: one":            {node(9, leaves), outcomes{2: ok}, true},
		"all: one":                         {node(all, leaves), outcomes{1: fail}, false},
		"all: both":                        {node(all, leaves), outcomes{1: ok, 2: fail}, true},
		"any ok: failure":                  {node(anyOK, leaves), outcomes{1: fail}, false},
		"any ok: success":                  {node(anyOK, leaves), outcomes{1: ok}, true},
		"any ok: all failed":               {node(anyOK, leaves), outcomes{1: fail, 2: fail}, true},
		"any ok: either":                   {node(anyOK, leaves), outcomes{1: Either}, true},
		"all ok: success":                  {node(allOK, leaves), outcomes{1: ok}, false},
		"all ok: failure":                  {node(allOK, leaves), outcomes{2: fail}, true},
		"all ok: all":                      {node(allOK, leaves), outcomes{1: ok, 2: ok}, true},
		"all ok: either":                   {node(allOK, leaves), outcomes{2: Either}, true},
		"all of two races: one":            {node(all, nil, node(first, []uint32{1, 2}), node(first, []uint32{3})), outcomes{2: ok}, false},
		"all of two races: both":           {node(all, nil, node(first, []uint32{1, 2}), node(first, []uint32{3})), outcomes{2: ok, 3: fail}, true},
		"all ok of races: failure":         {node(allOK, []uint32{9}, node(first, leaves)), outcomes{1: fail}, true},
		"all ok of races: success":         {node(allOK, []uint32{9}, node(first, leaves)), outcomes{1: ok}, false},
		"all ok of races: order unknown":   {node(allOK, []uint32{9}, node(first, leaves)), outcomes{1: ok, 2: fail}, true},
		"unknown below all ok wakes":       {node(allOK, []uint32{9}, node(unknown, leaves)), outcomes{1: ok}, true},
		"unknown below any ok wakes":       {node(anyOK, []uint32{9}, node(unknown, leaves)), outcomes{1: fail}, true},
		"unknown below all counts as done": {node(all, []uint32{9}, node(unknown, leaves)), outcomes{1: fail}, false},
		"wake now from deep below": {
			node(all, []uint32{8}, node(all, []uint32{9}, node(anyOK, []uint32{3}, node(unknown, leaves)))), outcomes{2: ok}, true,
		},
		"cancel beside a tree":  {Future{Combinator: first, Signals: []uint32{7}, Nested: []Future{node(all, leaves)}}, outcomes{7: ok}, true},
		"empty all below first": {node(first, []uint32{1}, node(all, nil)), nil, true},
		"empty first never":     {node(first, nil, node(first, nil)), nil, false},
	} {
		require.Equal(t, c.over, c.f.Over(c.with.of), name)
	}
}

func TestSignalsAndCompletionsDoNotMix(t *testing.T) {
	f := Future{Combinator: CombineFirstCompleted, Completions: []uint32{1}, Signals: []uint32{2}, Names: []string{"n"}}
	is := func(id NotificationID) func(NotificationID) Settled {
		return func(other NotificationID) Settled {
			if id == other {
				return Succeeded
			}
			return Pending
		}
	}
	for _, id := range []NotificationID{Completion(1), NumberedSignal(2), NamedSignal("n")} {
		require.True(t, f.Over(is(id)), id)
		require.True(t, f.Has(id), id)
	}
	for _, id := range []NotificationID{Completion(2), NumberedSignal(1), NamedSignal("m")} {
		require.False(t, f.Over(is(id)), id)
		require.False(t, f.Has(id), id)
	}
	require.Equal(t, []NotificationID{Completion(1), NumberedSignal(2), NamedSignal("n")}, slices.Collect(f.Leaves()))
}

func TestParseSuspension(t *testing.T) {
	flat := &Future{Combinator: CombineFirstCompleted, Completions: []uint32{2}, Signals: []uint32{1}}
	wrapped := &Future{
		Combinator: CombineFirstCompleted, Signals: []uint32{1},
		Nested: []Future{{Combinator: CombineFirstCompleted, Completions: []uint32{2}}},
	}
	for _, c := range []struct {
		bytes    string
		protocol uint8
		want     *Future
	}{
		{"0a0102120101", 5, flat},
		{"0a0102120101", 6, flat},
		{"08021001", 6, flat}, // not packed
		{"22080a01021201012801", 7, flat},
		{"220c12010122050a010228012801", 7, wrapped},
		{"1a016e", 5, &Future{Combinator: CombineFirstCompleted, Names: []string{"n"}}},
	} {
		f, err := ParseSuspension(fromHex(t, c.bytes), c.protocol)
		require.NoError(t, err, c.bytes)
		require.Equal(t, c.want, f, c.bytes)
	}
	for _, c := range []struct {
		bytes    string
		protocol uint8
	}{
		{"", 5}, {"", 7}, {"2200", 7}, {"0a0102120101", 7}, {"22080a01021201012801", 6}, {"0a05", 5}, {"0a01ff", 5}, {"22040a0102", 7},
	} {
		_, err := ParseSuspension(fromHex(t, c.bytes), c.protocol)
		require.ErrorIs(t, err, ErrPayload, "%s", c.bytes)
	}
}

func nest(levels int) []byte {
	b := fromHexSeed("0a0101")
	for range levels - 1 {
		b = append(protowire.AppendVarint([]byte{0x22}, uint64(len(b))), b...)
	}
	return b
}

func TestDepthIsBounded(t *testing.T) {
	f, err := ParseFuture(nest(MaxDepth))
	require.NoError(t, err)
	require.Equal(t, MaxDepth, f.Depth())
	_, err = ParseFuture(nest(MaxDepth + 1))
	require.ErrorIs(t, err, ErrTooDeep)

	// Far below the message size limit, but enough levels to exhaust any stack.
	deep := bytes.Repeat([]byte{0x22, 0xff, 0xff, 0xff, 0x7f}, 1<<20)
	_, err = ParseFuture(deep)
	require.Error(t, err)
}

func drawFuture(t *rapid.T, depth int) Future {
	f := Future{Combinator: Combinator(rapid.IntRange(0, 4).Draw(t, "combinator"))}
	f.Completions = rapid.SliceOfN(rapid.Uint32Range(1, 6), 0, 3).Draw(t, "completions")
	f.Signals = rapid.SliceOfN(rapid.Uint32Range(1, 6), 0, 2).Draw(t, "signals")
	f.Names = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 1).Draw(t, "names")
	if depth > 0 {
		for range rapid.IntRange(0, 3).Draw(t, "nested") {
			f.Nested = append(f.Nested, drawFuture(t, depth-1))
		}
	}
	return f
}

// arrival is one notification of a history.
type arrival struct {
	id NotificationID
	as Settled
}

func drawHistory(t *rapid.T, f *Future) []arrival {
	var ids []NotificationID
	for id := range f.Leaves() {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	var history []arrival
	for _, id := range rapid.Permutation(ids).Draw(t, "order") {
		history = append(history, arrival{id, Settled(rapid.IntRange(1, 2).Draw(t, "settled"))})
	}
	return history
}

// model is a second implementation of the wake-up rule: each node keeps its result and
// observes the notifications one by one.
type model struct {
	combinator Combinator
	leaves     []NotificationID
	nested     []*model
	done       []Settled // of the children, in the order in which they settled
	result     Settled
}

func newModel(f *Future) *model {
	ownLeaves := Future{Completions: f.Completions, Signals: f.Signals, Names: f.Names}
	m := &model{combinator: f.Combinator, leaves: slices.Collect(ownLeaves.Leaves())}
	for i := range f.Nested {
		m.nested = append(m.nested, newModel(&f.Nested[i]))
	}
	return m
}

// observe returns true if the node, or a relevant one below it, can no longer wait. Without
// a notification it evaluates the nodes that have no children.
func (m *model) observe(a *arrival) (wake bool) {
	if m.result != Pending {
		return false
	}
	var now []Settled
	for _, id := range m.leaves {
		if a != nil && id == a.id {
			now = append(now, a.as)
		}
	}
	for _, n := range m.nested {
		before := n.result
		wake = n.observe(a) || wake
		if before == Pending && n.result != Pending {
			now = append(now, n.result)
		}
	}
	first := len(m.done) == 0 && len(now) > 0
	m.done = append(m.done, now...)
	everyone := len(m.done) == len(m.leaves)+len(m.nested)
	switch m.combinator {
	case CombineUnknown:
		if first {
			m.result = Either
		}
	case CombineFirstCompleted:
		if first {
			m.result = now[0]
			if slices.ContainsFunc(now, func(s Settled) bool { return s != now[0] }) {
				m.result = Either // settled by one notification
			}
		}
	case CombineAllCompleted:
		if everyone {
			m.result = Succeeded
		}
	case CombineFirstSucceededOrAllFailed:
		return m.decide(Succeeded, Failed, everyone) || wake
	case CombineAllSucceededOrFirstFailed:
		return m.decide(Failed, Succeeded, everyone) || wake
	}
	return wake
}

func (m *model) decide(one, all Settled, everyone bool) (wake bool) {
	switch {
	case slices.Contains(m.done, one):
		m.result = one
	case slices.Contains(m.done, Either):
		return true
	case everyone:
		m.result = all
	}
	return false
}

func TestAPrunedAwaitIsOverExactlyWhenTheRuleSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3)
		history := drawHistory(t, &f)
		stored := &f
		m := newModel(&f)
		nothing := func(NotificationID) Settled { return Pending }
		over := f.Over(nothing)
		woken := m.observe(nil)
		for n := 0; ; n++ {
			require.Equal(t, woken || m.result != Pending, over, "after %v", history[:n])
			if over || n == len(history) {
				return
			}
			if n == 0 {
				stored = f.Prune(nothing)
			}
			just := func(id NotificationID) Settled {
				if id == history[n].id {
					return history[n].as
				}
				return Pending
			}
			woken = m.observe(&history[n])
			rest, arrived := stored.Arrive(history[n].id, history[n].as)
			if over = stored.Over(just); !over {
				stored = stored.Prune(just)
				require.Equal(t, stored, rest)
			}
			require.Equal(t, over, arrived)
		}
	})
}

func TestOverWithUnknownOrderIsNeverTooLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3)
		history := drawHistory(t, &f)
		there := history[:rapid.IntRange(0, len(history)).Draw(t, "there")]
		m := newModel(&f)
		m.observe(nil)
		for i := range there {
			m.observe(&there[i])
		}
		over := f.Over(func(id NotificationID) Settled {
			for _, a := range there {
				if a.id == id {
					return a.as
				}
			}
			return Pending
		})
		if m.result != Pending {
			require.True(t, over)
		}
	})
}

func TestAnAwaitIsCertainlyOverOnlyIfItIsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 2)
		history := drawHistory(t, &f)
		there := history[:rapid.IntRange(0, len(history)).Draw(t, "there")]
		settled := func(id NotificationID) Settled {
			for _, a := range there {
				if a.id == id {
					return a.as
				}
			}
			return Pending
		}
		if !f.Certain(settled) {
			return
		}
		require.True(t, f.Over(settled))
		for range 5 {
			m := newModel(&f)
			woken := m.observe(nil)
			for _, a := range rapid.Permutation(there).Draw(t, "order") {
				woken = m.observe(&a) || woken
			}
			require.True(t, woken || m.result != Pending)
		}
	})
}

func TestAFlatAwaitContainsEachPendingLeafOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3)
		history := drawHistory(t, &f)
		there := rapid.IntRange(0, len(history)).Draw(t, "there")
		var pending []NotificationID
		for _, a := range history[there:] {
			pending = append(pending, a.id)
		}
		flat := f.Flat(func(id NotificationID) Settled {
			if slices.Contains(pending, id) {
				return Pending
			}
			return Succeeded
		})
		require.ElementsMatch(t, pending, slices.Collect(flat.Leaves()))
		for _, id := range pending {
			require.True(t, flat.Over(func(other NotificationID) Settled {
				if other == id {
					return Failed
				}
				return Pending
			}))
		}
	})
}

func TestAnAwaitIsOverWhenEverythingHasArrived(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3)
		if hollow(&f) {
			return // an empty race never ends
		}
		as := Settled(rapid.IntRange(1, 3).Draw(t, "as"))
		require.True(t, f.Over(func(NotificationID) Settled { return as }))
	})
}

func TestFuturesDecodeLikeTheGeneratedCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFuture(t, 3)
		got, err := ParseFuture(marshal(t, generated(&f)))
		require.NoError(t, err)
		require.Equal(t, generated(&f), generated(got))
	})
}

// hollow reports whether some node has no children.
func hollow(f *Future) bool {
	return len(f.Completions)+len(f.Signals)+len(f.Names)+len(f.Nested) == 0 ||
		slices.ContainsFunc(f.Nested, func(n Future) bool { return hollow(&n) })
}

func generated(f *Future) *service.Future {
	m := &service.Future{CombinatorType: service.CombinatorType(f.Combinator)}
	m.WaitingCompletions = append(m.WaitingCompletions, f.Completions...)
	m.WaitingSignals = append(m.WaitingSignals, f.Signals...)
	m.WaitingNamedSignals = append(m.WaitingNamedSignals, f.Names...)
	for i := range f.Nested {
		m.NestedFutures = append(m.NestedFutures, generated(&f.Nested[i]))
	}
	return m
}
