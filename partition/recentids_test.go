package partition

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	restate "github.com/restatedev/sdk-go"
	"github.com/stretchr/testify/require"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/internal/raftgroup/logstore/logstoretest"
	"platform/partition/codec"
	"platform/partition/journal"
	"platform/partition/machine"
)

func numberedID(n uint64) (id ids.Invocation) {
	binary.LittleEndian.PutUint64(id[len(id)-8:], n)
	return id
}

// marks reports whether an invocation would be marked as fresh.
func (r *recentIDs) marks(inv *machine.Invoke, p priority) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.markedLocked(inv, p).Fresh
}

func TestOnlyTheFirstProposalOfAnIDIsMarkedAsFresh(t *testing.T) {
	r := newRecentIDs()
	inv := &machine.Invoke{ID: numberedID(1), Since: r.now()}
	require.True(t, r.marks(inv, prompt))
	require.Equal(t, machine.Invoke{ID: numberedID(1), Since: r.now()}, *inv, "the sender may repeat it")
	require.False(t, r.marks(inv, prompt), "a repetition")
	require.False(t, r.marks(&machine.Invoke{ID: numberedID(2)}, prompt), "others may have had the ID")
	require.False(t, r.marks(&machine.Invoke{ID: numberedID(2), Since: r.now()}, prompt), "a repetition by a node that has learned the level since")
	require.False(t, r.marks(&machine.Invoke{ID: numberedID(3), Since: r.now(), Fresh: true}, yielding), "it may be proposed in another order")
	require.False(t, r.marks(&machine.Invoke{ID: numberedID(4), Fresh: true}, prompt), "a claim of the sender alone")
	require.False(t, r.marks(&machine.Invoke{ID: numberedID(5), Since: newRecentIDs().now()}, prompt), "a moment of another leader, to which it may have been sent")
}

// Requests are sent, repeated and delayed in any order, over many times the number of IDs that
// are kept. Whatever is marked was never proposed before.
func TestNoIDIsMarkedAsFreshTwice(t *testing.T) {
	type sent struct {
		id    ids.Invocation
		since machine.Moment
	}
	r := newRecentIDs()
	proposed := map[ids.Invocation]bool{}
	var pending []sent
	marked, repeated := 0, 0
	for n := range uint64(20 * minRecentIDs) {
		pending = append(pending, sent{numberedID(n), r.now()})
		i := len(pending) - 1 - min(len(pending)-1, int(rand.ExpFloat64()*minRecentIDs/4)) // usually a late one
		s := pending[i]
		switch {
		case len(pending) > 3*minRecentIDs:
			pending = pending[1:]
		case rand.IntN(2) == 0:
			pending = append(pending[:i], pending[i+1:]...) // not repeated
		}
		if proposed[s.id] {
			repeated++
		}
		if r.marks(&machine.Invoke{ID: s.id, Since: s.since}, prompt) {
			require.False(t, proposed[s.id], "%d was proposed before", binary.LittleEndian.Uint64(s.id[16:]))
			marked++
		}
		proposed[s.id] = true
		require.LessOrEqual(t, len(r.current)+len(r.previous), 2*minRecentIDs)
	}
	require.Greater(t, marked, minRecentIDs)
	require.Greater(t, repeated, minRecentIDs)
}

// A repetition of a request finds the invocation although the first attempt was marked, before
// and after the feature level allows the mark, and at another leader.
func TestARepeatedRequestFindsItsInvocation(t *testing.T) {
	var runs atomic.Int64
	services := restate.NewService("Steps").Handler("do", restate.NewServiceHandler(
		func(restate.Context, string) (string, error) { return strconv.FormatInt(runs.Add(1), 10), nil }))
	var level atomic.Uint32
	level.Store(uint32(feature.Level3))
	c := newTestNodeWith(t, 1, func(cfg *Config) { cfg.Level = func() feature.Level { return feature.Level(level.Load()) } }, services)
	p := c.partitions[0]
	for _, now := range []feature.Level{feature.Level3, feature.Level4} {
		inv := request("Steps", "do", `"x"`)
		inv.Request, inv.Since = 7, p.Moment()
		require.NotZero(t, inv.Since)
		_, o, err := p.Call(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, machine.OK, o.Code)
		level.Store(uint32(feature.Level4))
		_, o, err = p.Call(t.Context(), inv)
		require.NoError(t, err)
		require.Equal(t, machine.Existing, o.Code, "level %d", now)
		require.True(t, o.Own)
	}
	inv := request("Steps", "do", `"x"`)
	inv.Request, inv.Since = 7, p.Moment()
	_, _, err := p.Call(t.Context(), inv)
	require.NoError(t, err)
	p.role.latest.Load().abandon(errRecoveryLevel)
	require.Eventually(t, func() bool { return p.Moment().Leadership != inv.Since.Leadership && p.Leading() }, time.Minute, time.Millisecond)
	_, o, err := p.Call(t.Context(), inv)
	require.NoError(t, err)
	require.Equal(t, machine.Existing, o.Code, "at another leader")
	require.EqualValues(t, 3, runs.Load())
}

// A smaller repetition may overtake the first request, which must then not be marked as fresh.
func TestASmallerRepetitionFindsItsInvocation(t *testing.T) {
	var storage *logstoretest.Held
	c := newTestNodeWith(t, 1, func(cfg *Config) {
		storage = &logstoretest.Held{Storage: cfg.Group.Storage}
		cfg.Group.Storage = storage
		cfg.Level = func() feature.Level { return feature.Level4 }
	})
	p := c.partitions[0]
	l, err := p.leader()
	require.NoError(t, err)
	for _, size := range []int{yieldingCommand, bulkCommand} {
		inv := request("Steps", "do", "")
		inv.Request, inv.Since, inv.Trace.Baggage = 7, p.Moment(), "tenant=1"
		input := strings.Repeat("x", size)
		for inv.Input = journal.NewInput(nil, []byte(input)); codec.CommandSize(inv) > size; {
			input = input[1:]
			inv.Input = journal.NewInput(nil, []byte(input))
		}
		again := *inv
		again.Since, again.Trace.Baggage = machine.Moment{}, ""
		require.Less(t, codec.CommandSize(&again), size)
		var (
			wg    sync.WaitGroup
			codes [3]machine.Code
		)
		submit := func(i int, inv *machine.Invoke) {
			wg.Add(1)
			require.NoError(t, l.submit(inv, func(o machine.Outcome, err error) {
				defer wg.Done()
				if err == nil {
					codes[i] = o.Code
				}
			}))
		}
		write := storage.Hold()
		submit(0, request("Steps", "do", "1"))
		<-write.Arrived
		submit(1, inv)
		submit(2, &again)
		close(write.Released)
		wg.Wait()
		require.ElementsMatch(t, []machine.Code{machine.OK, machine.Existing}, codes[1:], "size %d", size)
	}
}
